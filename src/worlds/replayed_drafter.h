// ReplayedDrafter: a drafter of a world. It proposes what the world says, and takes the time that the world says.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

#include "drafters/drafter.h"
#include "engine/fake_engine.h"
#include "worlds/world.h"

namespace outrider {

// The tokens of answers. Any will do, as long as a wrong one can be told from the right one.
inline Token TruthAt(int position) {
  return position * 7 % 1000;
}

class ReplayedDrafter : public Drafter, public HistoryReader {
 public:
  // `requests`: those that run, by sequence; `clock` advances by the time that the drafter takes.
  ReplayedDrafter(const WorldDrafter& drafter, size_t index, const std::vector<const WorldRequest*>& requests,
                  ManualClock& clock)
      : Drafter({.name = drafter.name, .computes = drafter.computes(), .draws = drafter.computes()}),
        drafter_(drafter),
        index_(index),
        requests_(requests),
        known_(requests.size()),
        arrives_(requests.size()),
        clock_(clock) {}

  void Begin(SeqId seq, std::span<const Token>, const DraftContext&) override {
    known_[static_cast<size_t>(seq)] = 0;
    arrives_[static_cast<size_t>(seq)] = {};
  }

  void Commit(SeqId seq, const CommittedStep& step) override {
    if (drafter_.delay_seconds == 0) return;
    const auto slot = static_cast<size_t>(seq);
    const int last = static_cast<int>(step.history.size()) - requests_[slot]->prompt_tokens - 1;
    const auto token = requests_[slot]->predictions[index_](last, 0);
    if (!token || !token->right) arrives_[slot] = clock_.Now() + ToDuration(drafter_.delay_seconds);
  }

  void End(SeqId, std::span<const Token>, bool) override {}

  HistoryReader* reader() override { return drafter_.read_seconds > 0 ? this : nullptr; }

  // A few tokens are read along with the draft.
  int Lag(SeqId seq, std::span<const Token> history) const override {
    const int missing = static_cast<int>(history.size()) - known_[static_cast<size_t>(seq)];
    return missing <= kReadAlong ? 0 : missing;
  }

  void Read(SeqId seq, std::span<const Token>, int tokens) override {
    known_[static_cast<size_t>(seq)] += tokens;
    Take(tokens * drafter_.read_seconds);
  }

  void Propose(std::span<Proposal*> proposals) override {
    int rounds = 0, drafting = 0;
    for (Proposal* proposal : proposals) {
      const int made = ProposeFor(*proposal);
      rounds = std::max(rounds, made);
      drafting += made > 0 ? 1 : 0;
    }
    Take(rounds * (drafter_.token_seconds + std::max(0, drafting - 1) * drafter_.more_token_seconds));
  }

 private:
  static Duration ToDuration(double seconds) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  void Take(double seconds) { clock_.Advance(ToDuration(seconds)); }

  // Returns how many tokens it made.
  int ProposeFor(Proposal& proposal) {
    const auto slot = static_cast<size_t>(proposal.seq);
    clock_.Advance(
        std::clamp(arrives_[slot] - clock_.Now(), Duration::zero(), ToDuration(std::max(0.0, proposal.patience))));
    proposal.due = std::max(0.0, std::chrono::duration<double>(arrives_[slot] - clock_.Now()).count());
    if (proposal.due > 0) return 0;
    if (drafter_.read_seconds > 0) {
      Take((static_cast<int>(proposal.history.size()) - known_[slot]) * drafter_.read_seconds);
      known_[slot] = static_cast<int>(proposal.history.size());
    }
    const WorldRequest& request = *requests_[slot];
    const int position = static_cast<int>(proposal.history.size()) - request.prompt_tokens + proposal.draft.size();
    double survival = 1;
    int made = 0;
    while (proposal.draft.size() < proposal.max_tokens && position + made < request.tokens) {
      const auto token = request.predictions[index_](position, made);
      if (!token) break;
      ++made;  // a token has to be made to find out that it is not worth proposing
      survival *= token->confidence;
      if (token->confidence < proposal.p_min || survival < proposal.min_survival) break;
      const Token truth = TruthAt(position + made - 1);
      proposal.draft.tokens.push_back({token->right ? truth : truth + 1, token->confidence, kNoDrafter});
    }
    return made;
  }

  const WorldDrafter& drafter_;
  const size_t index_;
  const std::vector<const WorldRequest*>& requests_;
  std::vector<int> known_;          // by sequence: tokens of the history that it has read
  std::vector<TimePoint> arrives_;  // by sequence: when a draft is there
  ManualClock& clock_;
};

}  // namespace outrider
