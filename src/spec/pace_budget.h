// PaceBudget: how much time a step may lose to drafts, so that no request becomes slower than it would be without them.
//
// A policy can only be as good as its estimates, and even right estimates are only chances. So every sequence has an
// account, in units of plain steps. A step adds the tokens that it brought, which is what plain steps would have taken
// for them, and takes away what it really took, drafting included. A new request begins with next to nothing, so what
// it risks it must have gained. An answer of 64 tokens may lose much less than one of 2,000 may invest; and the longer
// an answer is already, the longer it is likely to go on. So once it is longer than most (`long_answer`),
//
//   - each further token adds a small allowance, and
//   - what is spent once for several steps, a switch of shapes, may be paid off in more and more steps (Patience).
//
// A step may take so long that it loses a share of every account in it if nothing is accepted (Affordable), and as much
// longer as plain steps would take for the draft tokens that can be relied on (Policy::ReliableTokens). Staying in a
// shape costs no switch, so whoever has paid for one goes on as long as the drafts there are good.
//
// Beside others, each token adds what a share of --min-pace leaves (0.9: 11.1 %), because the others gain by it.
//
// This is no strict limit: relying on tokens with a chance of 0.7 means to lose sometimes, and a step may take longer
// than the cost curve says. docs/WORLDS.md has what requests lose at worst.
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

  // What the account of `seq` has, in plain steps. Negative = a debt.
  double Savings(SeqId seq, int generating) const;

  // In how many steps `seq` may pay off what is spent once for several steps.
  double Patience(SeqId seq) const;

  // A step brought `tokens` tokens and took as long as `plain_steps` plain steps of the same sequences.
  void Observe(SeqId seq, int generating, int tokens, double plain_steps);

 private:
  struct Account {
    double savings = 0;  // plain steps
    double tokens = 0;   // of the answer so far
  };

  double Allowance(int generating) const;  // per token
  Account& Of(SeqId seq) { return accounts_[static_cast<size_t>(seq)]; }
  const Account& Of(SeqId seq) const { return accounts_[static_cast<size_t>(seq)]; }

  const double min_pace_beside_others_;
  const PaceTuning tuning_;
  std::vector<Account> accounts_;  // by sequence
};

}  // namespace outrider
