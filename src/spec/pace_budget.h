// PaceBudget: how much time a step may lose to drafts, so that no request becomes slower than it would be without them.
//
// A policy can only be as good as its estimates, and on a machine or a text that nobody has seen they may be wrong. So
// every sequence has an account, in units of plain steps. A step adds the tokens that it brought, which is what plain
// steps would have taken for them, and takes away what it really took, drafting included. Each step also adds a small
// allowance, and a new request begins with the allowance of its first `judged_tokens` tokens.
//
// How long the next step may take follows from the account: so long that, if nothing is accepted, it loses no more than
// the allowance and a share of the account (Affordable). Only draft tokens that are very likely to be accepted
// (PolicyTuning::likely_survival) may be relied on; they are all that an account in debt still allows. What a drafter
// needs to read a history comes back only over many steps, so it may use up the account, but no more (Savings).
//
// So the promise is this: if every step takes all the time that it may and no draft token is ever accepted, an answer
// takes at most 1 / min_pace - 1 longer than without drafts, and once the allowance with which it began:
//
//     alone            1.0 % and 0.65 plain steps, which is 2.0 % for an answer of 64 tokens (`min_pace_alone` = 0.99)
//     beside others   11.1 % and 0.65 plain steps (--min-pace 0.9); the others gain by it
//
// The promise does not include that a step takes longer than the cost curve says, or that likely tokens are rejected
// more often than they should be. Both are learned from within a few steps.
//
// Gains can be lost again, but only up to a limit, so that a request whose drafts were good does not pay for the drafts
// of its neighbours for long.
//
// Pure; constant time per call.
#pragma once

#include <vector>

#include "base/token.h"
#include "spec/tuning.h"

namespace outrider {

class PaceBudget {
 public:
  // `min_pace_beside_others`: the share of its speed without drafts that a sequence keeps while others are generating
  // too; 0 = no limit then.
  PaceBudget(int n_sequences, double min_pace_beside_others, const PaceTuning& tuning = {});

  // A request begins in `seq`.
  void Begin(SeqId seq);

  // How many plain steps longer than a plain step the next step may take, as far as `seq` is concerned, if it brings
  // one token only. `generating`: sequences that generate in it.
  double Affordable(SeqId seq, int generating) const;

  // How many plain steps may be spent on what only later steps can bring back.
  double Savings(SeqId seq, int generating) const;

  // A step brought `tokens` tokens and took as long as `plain_steps` plain steps of the same sequences.
  void Observe(SeqId seq, int generating, int tokens, double plain_steps);

 private:
  double Allowance(int generating) const;  // per step

  const double min_pace_beside_others_;
  const PaceTuning tuning_;
  std::vector<double> accounts_;  // by sequence, in plain steps
};

}  // namespace outrider
