#include "drafters/ngram_simple.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "drafters/lookup_test_util.h"

namespace outrider {
namespace {

constexpr char kSmall[] = "size_n=3,size_m=8";

TEST(NgramSimpleTest, CopiesWhatFollowed) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("the cat sat on the mat. the c");
  EXPECT_EQ(talk.Draft(6), "at sat");
  EXPECT_EQ(talk.Draft(3), "at ");
}

TEST(NgramSimpleTest, TakesTheLatestPlace) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("key=old; key=new; ");
  talk.Say("key");
  EXPECT_EQ(talk.Draft(4), "=new");
}

TEST(NgramSimpleTest, CopiesAtMostSizeM) {
  Talk talk(NgramSimpleKind(), "size_n=3,size_m=4");
  talk.Begin("abcdefghijklmnopq abc");
  EXPECT_EQ(talk.Draft(10), "defg");
}

TEST(NgramSimpleTest, NeverMoreThanAsked) {  // others: 48 tokens for a limit of 24
  Talk talk(NgramSimpleKind());
  const std::string line = "a line that is a good deal longer than forty-eight tokens are, so that there is enough.\n";
  talk.Begin(line + line);
  EXPECT_EQ(talk.Draft(24), line.substr(0, 24));
  EXPECT_EQ(talk.Draft(0), "");
  EXPECT_EQ(talk.Draft(-1), "");
}

TEST(NgramSimpleTest, GoesOnWithALoop) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("hahaha");
  EXPECT_EQ(talk.Draft(7), "hahahah");
}

TEST(NgramSimpleTest, SaysNothingWithoutAMatch) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("");
  EXPECT_EQ(talk.Draft(5), "");
  talk.Say("abcdefg");
  EXPECT_EQ(talk.Draft(5), "");
}

TEST(NgramSimpleTest, ContinuesTheDraftOfAnother) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("one two three. o");
  EXPECT_EQ(talk.Draft(7, 0, "ne"), "ne two ");
  EXPECT_EQ(talk.Draft(2, 0, "ne"), "ne");
}

TEST(NgramSimpleTest, WaitsForEnoughHits) {
  Talk talk(NgramSimpleKind(), "size_n=3,min_hits=2");
  talk.Begin("abcd abc");
  EXPECT_EQ(talk.Draft(1), "");
  talk.Say("d abc");
  EXPECT_EQ(talk.Draft(1), "d");
}

TEST(NgramSimpleTest, IsSurerOfWhatAgreedBefore) {
  Talk agreed(NgramSimpleKind(), kSmall), differed(NgramSimpleKind(), kSmall);
  agreed.Begin("abcd xabcd yabc");
  differed.Begin("abce xabcd yabc");
  Proposal sure = agreed.Ask(1), unsure = differed.Ask(1);
  agreed.Propose(sure);
  differed.Propose(unsure);
  ASSERT_EQ(TextOf(sure.draft), "d");
  ASSERT_EQ(TextOf(unsure.draft), "d");
  EXPECT_GT(sure.draft.tokens[0].confidence, unsure.draft.tokens[0].confidence);
}

TEST(NgramSimpleTest, EndsWhereItIsNotSureEnough) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("abcdefghij abc");
  Proposal proposal = talk.Ask(8);
  proposal.p_min = 0.99f;
  talk.Propose(proposal);
  EXPECT_TRUE(proposal.draft.empty());
  proposal.p_min = 0;
  proposal.min_survival = 0.5;
  talk.Propose(proposal);
  EXPECT_GT(proposal.draft.size(), 0);
  EXPECT_LT(proposal.draft.size(), 8);
}

TEST(NgramSimpleTest, BeginForgetsTheSequence) {  // others: stale state over requests
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("a secret phrase");
  talk.Begin("a sec");
  EXPECT_EQ(talk.Draft(5), "");
}

TEST(NgramSimpleTest, HistoryMayShrinkAfterBegin) {  // others: abort
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("a long story with a long story");
  talk.Begin("xyz w xy");
  talk.Say("z");
  EXPECT_EQ(talk.Draft(2), " w");
}

TEST(NgramSimpleTest, SurvivesAHistoryThatShrinksWithoutBegin) {
  Talk talk(NgramSimpleKind(), kSmall);
  const std::vector<Token> history = ByteTokens("abcdefabcdef");
  talk.drafter().Begin(0, history, {});
  const auto shorter = std::span(history).first(4);
  talk.drafter().Commit(0, {shorter, 1});
  Proposal proposal{0, shorter, 5, 0, 0, {}};
  talk.Propose(proposal);
  EXPECT_LE(proposal.draft.size(), 5);
}

TEST(NgramSimpleTest, SequencesAreKeptApart) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("secret phrase", 0);
  talk.Begin("sec", 1);
  EXPECT_EQ(talk.Draft(5, 1), "");
  talk.Begin("none", 1);
  talk.Say(" secr", 0);
  EXPECT_EQ(talk.Draft(3, 0), "et ");
}

TEST(NgramSimpleTest, AnswersSeveralAtOnce) {
  Talk talk(NgramSimpleKind(), kSmall);
  talk.Begin("abcd abc", 0);
  talk.Begin("wxyz wxy", 3);
  Proposal first = talk.Ask(1, 0), second = talk.Ask(1, 3);
  Proposal* asked[] = {&first, &second};
  talk.drafter().Propose(asked);
  EXPECT_EQ(TextOf(first.draft), "d");
  EXPECT_EQ(TextOf(second.draft), "z");
}

TEST(NgramSimpleTest, RefusesBadParameters) {
  EXPECT_FALSE(MakeFromKind(NgramSimpleKind(), "size_n=0").ok());
  EXPECT_FALSE(MakeFromKind(NgramSimpleKind(), "size_n=65").ok());
  EXPECT_FALSE(MakeFromKind(NgramSimpleKind(), "size=3").ok());
}

RC_GTEST_PROP(NgramSimpleTest, KeepsItsPromises, ()) {
  CheckPromises(NgramSimpleKind(), *rc::gen::element<std::string>("size_n=1", "size_n=2,min_hits=2", kSmall));
}

}  // namespace
}  // namespace outrider
