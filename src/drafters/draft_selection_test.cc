#include "drafters/draft_selection.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

class SilentDrafter : public Drafter {
 public:
  SilentDrafter() : Drafter({.name = "silent"}) {}
  void Begin(SeqId, std::span<const Token>, const DraftContext&) override {}
  void Propose(std::span<Proposal*>) override {}
  void Commit(SeqId, const CommittedStep&) override {}
  void End(SeqId, std::span<const Token>, bool) override {}
};

DrafterRecord RecordOf(DrafterId id) {
  return {id, std::make_unique<SilentDrafter>(), 2};
}

// A drafter that has always been right, or always wrong, with these confidences.
void Teach(DrafterRecord& record, float confidence, bool right) {
  for (int i = 0; i < 200; ++i) record.acceptance.Observe(0, confidence, right);
}

Proposal ProposalOf(const std::vector<Token>& tokens, float confidence) {
  Proposal proposal{};
  proposal.seq = 0;
  for (const Token token : tokens) proposal.draft.tokens.push_back({token, confidence});
  return proposal;
}

std::vector<Token> TokensOf(const Draft& draft) {
  std::vector<Token> tokens;
  for (const DraftToken& token : draft.tokens) tokens.push_back(token.token);
  return tokens;
}

using Tokens = std::vector<Token>;

TEST(DraftSelectionTest, ADraftIsWorthItsTokensLessItsRows) {
  EXPECT_EQ(WorthOf({}, 0.1), 0);
  EXPECT_NEAR(WorthOf(std::vector<double>{0.9, 0.8, 0.05}, 0.1), 1.5, 1e-9) << "the third token is not worth its row";
  EXPECT_EQ(WorthOf(std::vector<double>{0.05}, 0.1), 0);
  EXPECT_NEAR(WorthOf(std::vector<double>{0.05, 0.9}, 0.1), 0.75, 1e-9) << "a bad token before good ones";
}

TEST(DraftSelectionTest, TheDraftThatIsWorthMostIsKept) {
  DraftSelection selection(2);
  DrafterRecord good = RecordOf(0), bad = RecordOf(1);
  Teach(good, 0.9f, true);
  Teach(bad, 0.9f, false);
  Proposal wrong = ProposalOf({5, 6, 7}, 0.9f), right = ProposalOf({1, 2}, 0.9f);
  selection.Offer(bad, wrong, false, 0.1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({5, 6, 7})) << "better than none";
  EXPECT_FALSE(selection.MayBeContinued(0));
  selection.Offer(good, right, false, 0.1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({1, 2}));
  EXPECT_EQ(selection.draft(0).tokens[0].source, 0);
  Proposal again = ProposalOf({8, 9, 10, 11}, 0.9f);
  selection.Offer(bad, again, false, 0.1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({1, 2}));
  EXPECT_TRUE(selection.draft(1).empty()) << "sequences are kept apart";
}

TEST(DraftSelectionTest, ADraftMayBeContinuedByAnotherDrafter) {
  DraftSelection selection(2);
  DrafterRecord first = RecordOf(0), second = RecordOf(1);
  Teach(first, 0.95f, true);
  Teach(second, 0.9f, true);
  Proposal beginning = ProposalOf({1, 2}, 0.95f);
  selection.Offer(first, beginning, false, 0.1);
  ASSERT_TRUE(selection.MayBeContinued(0));
  Proposal continued{};
  continued.draft = selection.draft(0);
  continued.draft.tokens.push_back({3, 0.9f});
  selection.Offer(second, continued, false, 0.1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({1, 2, 3}));
  EXPECT_EQ(selection.draft(0).tokens[1].source, 0);
  EXPECT_EQ(selection.draft(0).tokens[2].source, 1);
  EXPECT_EQ(selection.survival(0).size(), 3u);
  EXPECT_LE(selection.survival(0)[2], selection.survival(0)[1]);
}

TEST(DraftSelectionTest, SilenceChangesNothing) {
  DraftSelection selection(2);
  DrafterRecord record = RecordOf(0);
  Proposal draft = ProposalOf({1, 2}, 0.9f), nothing = ProposalOf({}, 0);
  selection.Offer(record, draft, false, 0.1);
  selection.Offer(record, nothing, false, 0.1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({1, 2}));
}

TEST(DraftSelectionTest, ARandomDrawIsJudgedWithoutALookAtIt) {
  DraftSelection selection(2);
  DrafterRecord record = RecordOf(0);
  for (int i = 0; i < 300; ++i) record.acceptance.Observe(0, i % 2 == 0 ? 0.95f : 0.05f, i % 2 == 0);
  const auto survival = [&](float confidence, bool blind) {
    selection.Clear(0);
    Proposal proposal = ProposalOf({1}, confidence);
    selection.Offer(record, proposal, blind, 0);
    return selection.survival(0)[0];
  };
  EXPECT_GT(survival(0.95f, false), survival(0.05f, false) + 0.3);
  EXPECT_EQ(survival(0.95f, true), survival(0.05f, true));
}

TEST(DraftSelectionTest, CutsTokensWithTheirDistributions) {
  DraftSelection selection(2);
  DrafterRecord record = RecordOf(0);
  Proposal proposal = ProposalOf({1, 2, 3}, 0.9f);
  proposal.draft.distributions.resize(3);
  selection.Offer(record, proposal, false, 0.1);
  selection.Cut(0, 1);
  EXPECT_EQ(TokensOf(selection.draft(0)), Tokens({1}));
  EXPECT_EQ(selection.draft(0).distributions.size(), 1u);
  selection.Cut(0, 0);
  EXPECT_TRUE(selection.survival(0).empty());
}

}  // namespace
}  // namespace outrider
