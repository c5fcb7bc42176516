#include "drafters/ngram_mod.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "drafters/lookup_test_util.h"

namespace outrider {
namespace {

constexpr char kSmall[] = "n_match=4,n_max=16,n_min=0";

TEST(NgramModTest, ContinuesFromTheTable) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("to be or not to be. to be o");
  EXPECT_EQ(talk.Draft(5), "r not");
  EXPECT_EQ(talk.Draft(2), "r ");
}

TEST(NgramModTest, RemembersOverRequests) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("a question about whales");
  talk.Say(" whales are mammals.");
  talk.End();
  talk.Begin("whales");
  EXPECT_EQ(talk.Draft(9), " are mamm");
}

TEST(NgramModTest, ForgetsWhenTold) {
  Talk talk(NgramModKind(), "n_match=4,n_min=0,remember=off");
  talk.Begin("whales are mammals");
  talk.Begin("whales");
  EXPECT_EQ(talk.Draft(9), "");
  talk.Say(" are; whales");
  EXPECT_EQ(talk.Draft(5), " are;");
}

TEST(NgramModTest, SharesBetweenSequencesOfAnOwner) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("whales are mammals", 0, "anna");
  talk.Begin("whales", 1, "anna");
  EXPECT_EQ(talk.Draft(4, 1), " are");
}

TEST(NgramModTest, OwnersAreKeptApart) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("the password is hunter22!", 0, "anna");
  talk.End(0);
  talk.Begin("the password is ", 0, "bert");
  EXPECT_EQ(talk.Draft(9, 0), "");
  talk.Begin("the password is ", 0, "");
  EXPECT_EQ(talk.Draft(9, 0), "");
  talk.Begin("the password is ", 0, "anna");
  EXPECT_EQ(talk.Draft(9, 0), "hunter22!");
}

TEST(NgramModTest, ForgetsTheOwnerThatWasAwayLongest) {
  Talk talk(NgramModKind(), "n_match=4,n_min=0,owners=2");
  talk.Begin("whales are mammals", 0, "anna");
  talk.Begin("one", 1, "bert");
  talk.Begin("two", 2, "cleo");
  EXPECT_EQ(talk.Draft(3, 0), "") << "a request of a forgotten owner goes on";
  talk.Begin("whales", 1, "anna");
  EXPECT_EQ(talk.Draft(4, 1), "");
}

TEST(NgramModTest, TheLatestTextWins) {  // others: stale state over requests
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("status: stopped");
  talk.End();
  talk.Begin("status: running; status: ");
  EXPECT_EQ(talk.Draft(7), "running");
}

TEST(NgramModTest, ShortContinuationsAreDroppedBelowNMin) {
  Talk talk(NgramModKind(), "n_match=4,n_max=16,n_min=8");
  talk.Begin("abcd1234567|");
  talk.Begin("abcd");
  EXPECT_EQ(talk.Draft(16), "1234567|");
  EXPECT_EQ(talk.Draft(3), "123") << "n_min is about what is known, not about what is asked for";
  talk.Say("1");
  EXPECT_EQ(talk.Draft(16), "");
}

TEST(NgramModTest, StopsAtNMax) {
  Talk talk(NgramModKind(), "n_match=4,n_max=6,n_min=0");
  talk.Begin("abcd1234567890 abcd");
  EXPECT_EQ(talk.Draft(16), "123456");
}

TEST(NgramModTest, ContinuesTheDraftOfAnother) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("one two three. on");
  EXPECT_EQ(talk.Draft(8, 0, "e "), "e two th");
}

TEST(NgramModTest, HistoryMayShrink) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("a long story with a long story");
  talk.Begin("ab");
  EXPECT_EQ(talk.Draft(5), "");
}

TEST(NgramModTest, SaysNothingBetweenRequests) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("abcdabcdabcd");
  talk.End();
  EXPECT_EQ(talk.Draft(5), "");
}

TEST(NgramModTest, IsLessSureOfWhatVaries) {
  Talk talk(NgramModKind(), kSmall);
  talk.Begin("abcd1 abcd1 abcd1 abcd1 wxyz1 wxyz2 wxyz3 wxyz4 abcd");
  Proposal stable = talk.Ask(1);
  talk.Propose(stable);
  talk.Say(" wxyz");
  Proposal varying = talk.Ask(1);
  talk.Propose(varying);
  ASSERT_EQ(TextOf(stable.draft), "1");
  ASSERT_EQ(TextOf(varying.draft), "4");
  EXPECT_GT(stable.draft.tokens[0].confidence, 0.9f);
  EXPECT_LT(varying.draft.tokens[0].confidence, 0.5f);
}

TEST(NgramModTest, NMinFollowsNMax) {
  EXPECT_TRUE(MakeFromKind(NgramModKind(), "n_max=8").ok());
  const auto made = MakeFromKind(NgramModKind(), "n_max=8,n_min=9");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "drafter ngram-mod: n_min must be a whole number from 0 to 8, not '9'");
}

RC_GTEST_PROP(NgramModTest, KeepsItsPromises, ()) {
  CheckPromises(NgramModKind(), *rc::gen::element<std::string>("n_match=1,n_min=0", "n_match=2,n_min=3", kSmall));
}

}  // namespace
}  // namespace outrider
