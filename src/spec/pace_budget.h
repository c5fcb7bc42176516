// PaceBudget: how much time a step may lose to drafts, so that no request becomes slower than it would be without them.
//
// A policy can only be as good as its estimates, and on a machine or a text that nobody has seen they may be wrong. So
// every sequence has an account, in units of plain steps. A step adds the tokens that it brought, which is what plain
// steps would have taken for them, and takes away what it really took, drafting included. Each step also adds a small
// allowance, and a new request begins with the allowance of its first `judged_tokens` tokens. A step may take no longer
// than every account in it can afford if only a part of the expected draft tokens is accepted, and none at all once an
// account is in debt.
//
// So the promise is this: if every step takes all the time that it may and no draft token is ever accepted, an answer
// takes at most 1 / min_pace - 1 longer than without drafts, and once the allowance with which it began:
//
//     alone            1.4 % and 0.9 plain steps, which is 2.8 % for an answer of 64 tokens (`min_pace_alone` = 0.986)
//     beside others   11.1 % and 0.9 plain steps (--min-pace 0.9); the others gain by it
//
// A step may still take longer than the cost curve says; the promise does not include that.
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

  // The share of the draft tokens which are expected to be accepted that a step may rely on: as many as were accepted
  // of those that were expected lately.
  double Trust() const;

  // Of the drafts that a step verified, `expected` tokens were expected to be accepted, and `accepted` were.
  void ObserveDrafts(double expected, int accepted);

  // A step brought `tokens` tokens and took as long as `plain_steps` plain steps of the same sequences.
  void Observe(SeqId seq, int generating, int tokens, double plain_steps);

 private:
  double Allowance(int generating) const;  // per step

  const double min_pace_beside_others_;
  const PaceTuning tuning_;
  std::vector<double> accounts_;        // by sequence, in plain steps
  double expected_ = 0, accepted_ = 0;  // draft tokens; older ones count less
};

}  // namespace outrider
