// Seat: a drafter at the Speculator's table, and what is known about it: how often it is right, what its tokens cost,
// and what it said that the target has not answered yet.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "drafters/drafter.h"
#include "spec/acceptance_model.h"
#include "spec/draft.h"

namespace outrider {

// Mean of the last few dozen values, from the first one on.
class RecentMean {
 public:
  void Observe(double value) {
    count_ = std::min(count_ + 1, 32.0);
    mean_ += (value - mean_) / count_;
  }
  bool known() const { return count_ > 0; }
  double value() const { return mean_; }

 private:
  double mean_ = 0, count_ = 0;
};

class Seat {
 public:
  Seat(DrafterId id, std::unique_ptr<Drafter> drafter, int n_sequences);

  // A request begins in `seq`.
  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context);

  // The target said `added` more tokens: what was foretold of them is scored, whether it was verified or not.
  void Commit(SeqId seq, std::span<const Token> history, int added);

  // The proposal's tokens from `own_from` on are this drafter's guess, to be scored. Unless one is `better` (it will be
  // verified), an earlier guess that is not answered yet stays.
  void Foretell(const Proposal& proposal, size_t own_from, bool better);

  // Chances that the proposal's tokens from `own_from` on survive, appended to those of the tokens before. `blind`:
  // without a look at what was drawn.
  void Survive(const Proposal& proposal, size_t own_from, bool blind, std::vector<double>* survival) const;

  DrafterId id;
  std::unique_ptr<Drafter> drafter;
  AcceptanceModel acceptance;
  std::vector<Proposal> proposals;  // by sequence, reused from step to step
  RecentMean round_seconds;         // if it computes: one more token for all drafts of a step
  RecentMean read_seconds;          // if it computes: a token of a prompt
  double trial_seconds = 0;         // spent while out of favour

 private:
  // What it foretold and the target has not answered in full.
  struct Shadow {
    std::vector<DraftToken> tokens;
    size_t own_from = 0;  // the tokens before are another drafter's, which this one continued
    size_t answered = 0;

    bool open() const { return answered < tokens.size(); }
    void Close() { answered = tokens.size(); }
  };

  std::vector<Shadow> shadows_;  // by sequence
};

}  // namespace outrider
