// The Speculator and a drafter that is far away: after a wrong draft the next one takes some time to arrive. The
// Speculator must wait for it only if that pays.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "base/clock.h"
#include "drafters/speculator.h"
#include "engine/fake_engine.h"

namespace outrider {
namespace {

constexpr int kPrompt = 10;
constexpr double kPlainSeconds = 0.03;
constexpr double kRowShare = 0.05;  // of a plain step, for one more row

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

Token TruthAt(size_t position) {
  return static_cast<Token>(position * 31 % 97);
}

// Each token is right with a fixed chance. While its tokens are right the drafter continues its line of tokens; after a
// wrong token it begins a new line, which arrives `delay` later.
class FarDrafter : public Drafter {
 public:
  FarDrafter(double acceptance, double delay, bool says_when, ManualClock& clock)
      : Drafter({.name = "far"}), acceptance_(acceptance), delay_(delay), says_when_(says_when), clock_(clock) {}

  void Begin(SeqId, std::span<const Token> history, const DraftContext&) override { NewLine(history.size()); }
  void Commit(SeqId, const CommittedStep& step) override {
    if (wrong_at_ < step.history.size()) NewLine(step.history.size());
  }
  void End(SeqId, std::span<const Token>, bool) override {}
  void Propose(std::span<Proposal*> proposals) override {
    for (Proposal* proposal : proposals) {
      waited_ += proposal->patience > 0 ? 1 : 0;
      clock_.Advance(std::min(Seconds(proposal->patience), std::max(Duration::zero(), ready_ - clock_.Now())));
      if (says_when_) proposal->due = std::max(0.0, std::chrono::duration<double>(ready_ - clock_.Now()).count());
      if (clock_.Now() < ready_) continue;
      for (size_t at = proposal->history.size(); proposal->draft.size() < std::min(proposal->max_tokens, 16); ++at) {
        proposal->draft.tokens.push_back({at < wrong_at_ ? TruthAt(at) : TruthAt(at) + 1, 0.8f});
      }
    }
  }

  int waited() const { return waited_; }

 private:
  void NewLine(size_t from) {
    ready_ = clock_.Now() + Seconds(delay_);
    for (wrong_at_ = from; std::uniform_real_distribution<double>(0, 1)(random_) < acceptance_;) ++wrong_at_;
  }

  const double acceptance_, delay_;
  const bool says_when_;
  ManualClock& clock_;
  std::mt19937 random_{7};
  size_t wrong_at_ = 0;  // the first token of the line that is
  TimePoint ready_{};
  int waited_ = 0;
};

// Of 600 tokens, in plain steps.
double TimePerToken(double acceptance, double delay_in_steps, bool may_wait, int* waited = nullptr) {
  constexpr size_t kTokens = 600;
  ManualClock clock;
  std::vector<std::unique_ptr<Drafter>> drafters;
  auto far = std::make_unique<FarDrafter>(acceptance, delay_in_steps * kPlainSeconds, may_wait, clock);
  const FarDrafter* const drafter = far.get();
  drafters.push_back(std::move(far));
  std::vector<CostPoint> points;
  const auto cost = [](int rows) { return kPlainSeconds * (1 + kRowShare * (rows - 1)); };
  for (const int rows : {1, 2, 4, 8, 16, 32}) points.push_back({rows, cost(rows)});
  EngineInfo info;
  info.n_sequences = 1;
  const FakeEngine engine(info, nullptr);
  Speculator speculator(std::move(drafters), CostCurve(std::move(points), 0), {}, engine, clock);
  std::vector<Token> history;
  for (size_t i = 0; i < kPrompt; ++i) history.push_back(TruthAt(i));
  speculator.Begin(0, history, {}, {});
  const TimePoint start = clock.Now();
  while (history.size() < kPrompt + kTokens) {
    const DraftableSequence sequence = {0, history, static_cast<int>(kPrompt + kTokens - history.size()) - 1, 1};
    speculator.ChooseDrafts(std::span(&sequence, 1), {}, 31);
    const Draft& draft = speculator.draft(0);
    const double seconds = cost(1 + draft.size());
    clock.Advance(Seconds(seconds));
    int added = 0;
    for (bool right = true; right; ++added) {
      right = added < draft.size() && draft.tokens[static_cast<size_t>(added)].token == TruthAt(history.size());
      history.push_back(TruthAt(history.size()));
    }
    speculator.Commit(0, {history, added}, added - 1);
    speculator.ObserveStep(seconds);
  }
  if (waited != nullptr) *waited = drafter->waited();
  return std::chrono::duration<double>(clock.Now() - start).count() / kPlainSeconds / kTokens;
}

TEST(WaitingTest, WaitsForADraftThatIsWorthIt) {
  int waited = 0;
  const double never = TimePerToken(0.8, 0.2, false);
  const double ours = TimePerToken(0.8, 0.2, true, &waited);
  EXPECT_LT(ours, 0.9 * never);
  EXPECT_GT(waited, 30);
}

TEST(WaitingTest, WaitingNeverCosts) {
  for (const double acceptance : {0.0, 0.3, 0.6, 0.8, 0.95}) {
    for (const double delay : {0.01, 0.1, 0.3, 0.7, 1.5, 5.0}) {
      const double never = TimePerToken(acceptance, delay, false), ours = TimePerToken(acceptance, delay, true);
      std::printf("acceptance %.2f, delay %.2f steps: %.3f without waiting, %.3f\n", acceptance, delay, never, ours);
      EXPECT_LT(ours, 1.03 * never) << acceptance << " " << delay;
      EXPECT_LT(ours, 1.04) << acceptance << " " << delay;
    }
  }
}

}  // namespace
}  // namespace outrider
