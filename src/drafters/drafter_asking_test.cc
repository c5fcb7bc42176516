// When drafters are asked: what they cost and how often they are right decides, not their kind.
#include "drafters/drafter_asking.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"

namespace outrider {
namespace {

constexpr double kPlainSeconds = 0.01;

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Drafts as many tokens as it is asked for, each of which takes its time, after it has read the history.
class SlowDrafter : public Drafter, public HistoryReader {
 public:
  SlowDrafter(double token_seconds, int unread, ManualClock& clock)
      : Drafter({.name = "slow", .computes = true}), token_seconds_(token_seconds), unread_(unread), clock_(clock) {}

  void Begin(SeqId, std::span<const Token>, const DraftContext&) override {}
  void Commit(SeqId, const CommittedStep&) override {}
  void End(SeqId, std::span<const Token>, bool) override {}
  HistoryReader* reader() override { return this; }
  int Lag(SeqId, std::span<const Token>) const override { return unread_; }
  void Read(SeqId, std::span<const Token>, int tokens) override {
    slices.push_back(tokens);
    unread_ -= tokens;
    clock_.Advance(Seconds(tokens * 1e-5));
  }
  void Propose(std::span<Proposal*> proposals) override {
    for (Proposal* proposal : proposals) {
      asked.push_back(proposal->max_tokens);
      while (proposal->draft.size() < proposal->max_tokens) {
        proposal->draft.tokens.push_back({7, 0.9f});
        clock_.Advance(Seconds(token_seconds_));
      }
    }
  }

  std::vector<int> asked, slices;

 private:
  const double token_seconds_;
  int unread_;
  ManualClock& clock_;
};

EngineInfo OneSequence() {
  EngineInfo info;
  info.n_sequences = 1;
  return info;
}

class AskingTest : public testing::Test {
 protected:
  // `row_cost`: of one more row, in plain steps.
  void Make(double token_seconds, int unread, double row_cost) {
    curve_ =
        CostCurve({{1, kPlainSeconds}, {2, kPlainSeconds * (1 + row_cost)}, {3, kPlainSeconds * (1 + 2 * row_cost)}});
    auto drafter = std::make_unique<SlowDrafter>(token_seconds, unread, clock_);
    drafter_ = drafter.get();
    record_.emplace(0, std::move(drafter), 1);
    requests_[0] = {true, false, 16, 0, 0, {true}, 0};
    asking_.emplace(options_, requests_, step_, curve_, policy_, selection_, account_, clock_);
    account_.BeginRequest(0);
  }

  // A step of the only sequence; returns the length of the draft.
  int Step(std::span<const SequenceRows> prompts = {}) {
    const DraftableSequence sequence = {0, history_, 100};
    step_.Begin(std::span(&sequence, 1), prompts);
    selection_.Clear(0);
    asking_->BeginStep(budget_);
    asking_->AskIfItPays(*record_);
    asking_->EndStep(kPlainSeconds + asking_->draft_seconds());
    return selection_.draft(0).size();
  }

  void Teach(bool right) {
    for (int i = 0; i < 200; ++i) record_->acceptance.Observe(0, 0.9f, right);
  }

  ManualClock clock_;
  SpeculatorOptions options_;
  StepBudget budget_;
  const FakeEngine engine_{OneSequence(), nullptr};
  CostCurve curve_;
  RollbackCost rollback_;
  Policy policy_{curve_, rollback_, [this](auto rows, StepLayout* layout) { engine_.LayOut(rows, layout); }};
  std::vector<SpeculationRequest> requests_ = std::vector<SpeculationRequest>(1);
  PlannedStep step_{engine_};
  DraftSelection selection_{1};
  SpeculationAccount account_{{"slow"}, 1};
  std::optional<DrafterRecord> record_;
  std::optional<DrafterAsking> asking_;
  SlowDrafter* drafter_ = nullptr;
  const std::vector<Token> history_ = std::vector<Token>(50);
};

TEST_F(AskingTest, ADrafterThatIsRightAndCheapIsAskedForLongDrafts) {
  Make(1e-4, 0, 0.05);
  Teach(true);
  Step();
  EXPECT_GE(Step(), 4);
  EXPECT_EQ(record_->trial_seconds, 0);
}

TEST_F(AskingTest, ADrafterAsExpensiveAsTheTargetIsOnlyTriedNowAndThen) {
  Make(kPlainSeconds, 0, 0.05);
  Teach(true);
  record_->token_seconds.Observe(kPlainSeconds);
  for (int i = 0; i < 2000; ++i) Step();
  EXPECT_GE(drafter_->asked.size(), 1u) << "what it costs may change";
  EXPECT_LE(drafter_->asked.size(), 60u);
  EXPECT_LE(record_->trial_seconds, 0.02 + 0.005 * 2000 * (kPlainSeconds + 0.001) + 3 * kPlainSeconds);
}

TEST_F(AskingTest, ADrafterThatIsAlwaysWrongIsOnlyTriedNowAndThen) {
  Make(1e-3, 0, 0.3);
  Teach(false);
  record_->token_seconds.Observe(1e-3);
  for (int i = 0; i < 1000; ++i) Step();
  EXPECT_GE(drafter_->asked.size(), 1u);
  EXPECT_LE(drafter_->asked.size(), 60u);
}

TEST_F(AskingTest, AHistoryIsReadInSlicesBeforeTheFirstDraft) {
  Make(1e-4, 700, 0.05);
  Teach(true);
  record_->read_seconds.Observe(1e-5);
  for (int i = 0; i < 20 && drafter_->asked.empty(); ++i) Step();
  EXPECT_GT(drafter_->slices.size(), 1u);
  for (const int slice : drafter_->slices) EXPECT_LE(slice, 500) << "half a plain step at most";
  EXPECT_EQ(drafter_->Lag(0, history_), 0);
  EXPECT_FALSE(drafter_->asked.empty());
}

// Reading pays only if the rest of the answer is as good as expected, so a request that cannot afford to lose it does
// without.
TEST_F(AskingTest, AHistoryIsReadOnlyIfTheRequestCanAffordAllOfIt) {
  Make(1e-4, 700, 0.05);
  Teach(true);
  record_->read_seconds.Observe(kPlainSeconds / 200);  // three and a half plain steps for the whole history
  double savings = -1;                                 // no trials
  budget_.savings = std::span(&savings, 1);
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_TRUE(drafter_->slices.empty());
  savings = 4;
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_EQ(drafter_->Lag(0, history_), 0);
}

TEST_F(AskingTest, NothingIsReadBesideAPrompt) {
  Make(1e-4, 700, 0.05);
  Teach(true);
  record_->read_seconds.Observe(1e-5);
  const SequenceRows prompt[] = {{1, 64}};
  for (int i = 0; i < 5; ++i) Step(prompt);
  EXPECT_TRUE(drafter_->slices.empty());
}

TEST_F(AskingTest, ARequestThatForbidsADrafterIsNotDraftedFor) {
  Make(1e-4, 0, 0.05);
  Teach(true);
  requests_[0].allowed = {false};
  EXPECT_EQ(Step(), 0);
  EXPECT_TRUE(drafter_->asked.empty());
}

}  // namespace
}  // namespace outrider
