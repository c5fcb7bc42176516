#include "drafters/ngram_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "drafters/lookup_test_util.h"

namespace outrider {
namespace {

constexpr char kSmall[] = "size_n=3,size_m=8";

class NgramMapTest : public testing::TestWithParam<DrafterKind (*)()> {};
INSTANTIATE_TEST_SUITE_P(Kinds, NgramMapTest, testing::Values(&NgramMapKKind, &NgramMapK4vKind));

TEST_P(NgramMapTest, FollowsTheMap) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("the quick brown fox. the");
  EXPECT_EQ(talk.Draft(6), " quick");
  EXPECT_EQ(talk.Draft(20), " quick b") << "size_m";
}

TEST_P(NgramMapTest, NeverMoreThanAsked) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("abcdefgh abc");
  EXPECT_EQ(talk.Draft(2), "de");
  EXPECT_EQ(talk.Draft(0), "");
}

TEST_P(NgramMapTest, GoesOnWithALoop) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("hahahaha");
  EXPECT_EQ(talk.Draft(5), "hahah");
}

TEST_P(NgramMapTest, ContinuesTheDraftOfAnother) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("one two three. o");
  EXPECT_EQ(talk.Draft(7, 0, "ne"), "ne two ");
}

TEST_P(NgramMapTest, WaitsForEnoughHits) {
  Talk talk(GetParam()(), "size_n=3,min_hits=2");
  talk.Begin("abcd abc");
  EXPECT_EQ(talk.Draft(1), "");
  talk.Say("d abc");
  EXPECT_EQ(talk.Draft(1), "d");
}

TEST_P(NgramMapTest, BeginForgetsTheSequence) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("a long secret phrase");
  talk.Begin("a long sec");
  EXPECT_EQ(talk.Draft(5), "");
}

TEST_P(NgramMapTest, SequencesAreKeptApart) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("secret phrase", 0);
  talk.Begin("sec", 1);
  EXPECT_EQ(talk.Draft(5, 1), "");
}

TEST_P(NgramMapTest, HistoryMayShrink) {
  Talk talk(GetParam()(), kSmall);
  talk.Begin("a long story with a long story");
  talk.Begin("ab");
  EXPECT_EQ(talk.Draft(5), "");
  talk.Say("c abc");
  EXPECT_EQ(talk.Draft(1), " ");
}

TEST(NgramMapKTest, TakesWhatFollowedLast) {
  Talk talk(NgramMapKKind(), kSmall);
  talk.Begin("abcd abcd abcx abc");
  EXPECT_EQ(talk.Draft(1), "x");
}

TEST(NgramMapKTest, IsLessSureOfWhatFollowedOnce) {
  Talk talk(NgramMapKKind(), kSmall);
  talk.Begin("abcd abcd abcx abc");
  Proposal proposal = talk.Ask(1);
  talk.Propose(proposal);
  ASSERT_EQ(proposal.draft.size(), 1);
  EXPECT_LT(proposal.draft.tokens[0].confidence, 0.7f);
}

TEST(NgramMapK4vTest, TakesWhatFollowedMostOften) {
  Talk talk(NgramMapK4vKind(), kSmall);
  talk.Begin("abcd abcd abcx abc");
  EXPECT_EQ(talk.Draft(1), "d");
}

TEST(NgramMapK4vTest, SaysNothingIfItIsNotClear) {
  Talk talk(NgramMapK4vKind(), kSmall);
  talk.Begin("abcd abcx abc");
  EXPECT_EQ(talk.Draft(1), "");
  talk.Say("d abc");
  EXPECT_EQ(talk.Draft(1), "d") << "two to one";
}

TEST(NgramMapK4vTest, EndsWhereTheWaysPart) {
  Talk talk(NgramMapK4vKind(), kSmall);
  talk.Begin("abcdef1 abcdef2 abc");
  EXPECT_EQ(talk.Draft(8), "def");
}

RC_GTEST_PROP(NgramMapKTest, KeepsItsPromises, ()) {
  CheckPromises(NgramMapKKind(), *rc::gen::element<std::string>("size_n=1", "size_n=2,min_hits=2", kSmall));
}

RC_GTEST_PROP(NgramMapK4vTest, KeepsItsPromises, ()) {
  CheckPromises(NgramMapK4vKind(), *rc::gen::element<std::string>("size_n=1", "size_n=2,min_hits=2", kSmall));
}

}  // namespace
}  // namespace outrider
