// DraftSelection: the best draft of each sequence in the step that is being planned.
//
// Drafters offer their drafts one after the other. A sequence keeps the one that is worth most: the tokens that it is
// expected to bring, less the price of its rows. A draft that is likely to be right to its end may be continued by
// another drafter.
#pragma once

#include <span>
#include <vector>

#include "drafters/drafter_record.h"
#include "spec/draft.h"

namespace outrider {

// Tokens that a draft with these chances is expected to bring, less `row_price` tokens for each row; cut where that is
// most.
double WorthOf(std::span<const double> survival, double row_price);

class DraftSelection {
 public:
  // A draft that survives to its end with the chance `min_joint_survival` may be continued.
  DraftSelection(int n_sequences, double min_joint_survival)
      : min_joint_survival_(min_joint_survival), best_(static_cast<size_t>(n_sequences)) {}

  void Clear(SeqId seq) { Of(seq).draft.Clear(); }

  const Draft& draft(SeqId seq) const { return Of(seq).draft; }
  // Chances that its first tokens survive; empty if there is no draft.
  std::span<const double> survival(SeqId seq) const;

  bool MayBeContinued(SeqId seq) const { return !draft(seq).empty() && survival(seq).back() >= min_joint_survival_; }

  // `record`'s drafter proposed: it becomes the source of the tokens that have none, and its draft is taken if it
  // continues the one of the selection or is worth more than that at `row_price`. `blind`: the tokens are random draws
  // that may be rejected, so whether they are verified must not depend on what was drawn.
  void Offer(DrafterRecord& record, Proposal& proposal, bool blind, double row_price);

  // Only the first `rows` tokens are verified.
  void Cut(SeqId seq, int rows);

 private:
  struct Best {
    Draft draft;
    std::vector<double> survival;
  };

  Best& Of(SeqId seq) { return best_[static_cast<size_t>(seq)]; }
  const Best& Of(SeqId seq) const { return best_[static_cast<size_t>(seq)]; }

  const double min_joint_survival_;
  std::vector<Best> best_;  // by sequence
  std::vector<double> offered_;
};

}  // namespace outrider
