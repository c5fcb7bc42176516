#include "scheduler/verifier.h"

#include <gtest/gtest.h>

#include <limits>

#include "scheduler/scheduler_test_util.h"

namespace outrider {
namespace {

struct VerifierTest : testing::Test {
  // Verifies a draft for a request whose next tokens the engine recites: "abcdef", then the end of the text ('$' here).
  StepEntry& Verify(const std::string& draft, GenerationRequest request = Request("prompt")) {
    PendingRequest pending = Pending(std::move(request));
    sequence = pool.Begin(pending, {});
    step.ShareRows(pool.sequences(), {});
    for (const char c : draft) drafted.push_back({c == '$' ? FakeTokenizer::kEos : static_cast<Token>(c), 0.5f});
    StepEntry& entry = step.entries()[0];
    entry.draft = drafted;
    step.AddRows(entry, false);
    EXPECT_TRUE(engine.Decode(step.batch()).ok());
    Verifier(engine, tokenizer, speculator, VerifyMode::kMatch, clock).Verify(step.entries());
    return entry;
  }
  std::string Drawn() const {
    std::string text;
    for (const DrawnToken& drawn : sequence->drawn) text += tokenizer.Piece(drawn.token, /*show_special=*/true);
    return text;
  }

  FakeTokenizer tokenizer;
  ManualClock clock;
  FakeEngine engine{SmallEngine(1), FakeEngine::Reciting("abcdef", 6)};
  Speculator speculator{{}, CostCurve(), SpeculatorOptions(), engine, clock};
  SlotPool pool{engine};
  StepBatch step{engine, 32};
  std::vector<DraftToken> drafted;
  Sequence* sequence = nullptr;
};

TEST_F(VerifierTest, WithoutADraftOneTokenIsDrawn) {
  EXPECT_EQ(Verify("").accepted, 0);
  EXPECT_EQ(Drawn(), "a");
}

TEST_F(VerifierTest, ARightDraftIsAcceptedAndOneTokenMoreIsDrawn) {
  EXPECT_EQ(Verify("abc").accepted, 3);
  EXPECT_EQ(Drawn(), "abcd");
}

TEST_F(VerifierTest, TheFirstWrongTokenEndsTheWalk) {
  EXPECT_EQ(Verify("abXd").accepted, 2);
  EXPECT_EQ(Drawn(), "abc") << "the target's own token in place of the wrong one, and none of the rows after it";
}

TEST_F(VerifierTest, TheEndOfTheTextEndsTheWalk) {
  StepEntry& entry = Verify("abcdef$$");
  EXPECT_EQ(entry.accepted, 7) << "the drafted end too, and nothing after it";
  EXPECT_EQ(Drawn(), "abcdef<eos>");
  EXPECT_TRUE(sequence->drawn.back().ends);
  EXPECT_FALSE(sequence->drawn.front().ends);
}

TEST_F(VerifierTest, AnUnfinishedPromptDrawsNothing) {
  StepEntry& entry = Verify("", Request(std::string(100, 'p')));
  EXPECT_EQ(entry.accepted, 0);
  EXPECT_EQ(Drawn(), "");
}

TEST_F(VerifierTest, WhereNoTokenMayBeDrawnTheWalkEnds) {
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  GenerationRequest request = Request("prompt");
  for (Token token = 0; token < 258; ++token) request.sampling.logit_bias.emplace_back(token, kBanned);
  Verify("abc", request);
  ASSERT_EQ(sequence->drawn.size(), 1u);
  EXPECT_EQ(sequence->drawn[0].token, kNoToken);
}

TEST_F(VerifierTest, WithAGrammarDraftsAreNotRejectedAtRandom) {
  const Verifier rejecting(engine, tokenizer, speculator, VerifyMode::kReject, clock);
  GenerationRequest request = Request("prompt");
  EXPECT_EQ(rejecting.ModeFor(request), VerifyMode::kReject);
  request.sampling.grammar.text = "abc";
  EXPECT_EQ(rejecting.ModeFor(request), VerifyMode::kMatch);
}

}  // namespace
}  // namespace outrider
