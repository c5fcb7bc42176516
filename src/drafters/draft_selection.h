// DraftSelection: the best draft of each sequence in the step that is being planned.
//
// Drafters offer their drafts one after the other, and the draft with the highest worth is kept for each sequence. The
// worth of a draft is the number of its tokens that are expected to be accepted, less the price of its rows. A draft
// that is likely to be accepted completely may be continued by another drafter.
#pragma once

#include <span>
#include <vector>

#include "drafters/drafter_record.h"
#include "spec/draft.h"
#include "spec/tuning.h"

namespace outrider {

// The number of tokens of a draft that are expected to be accepted, less `row_price` tokens for each row; for the
// beginning of the draft for which this difference is largest. `survival`: chances that its first tokens are accepted.
double WorthOf(std::span<const double> survival, double row_price);

class DraftSelection {
 public:
  explicit DraftSelection(int n_sequences, const AskingTuning& tuning = {})
      : min_joint_survival_(tuning.min_joint_survival), best_(static_cast<size_t>(n_sequences)) {}

  void Clear(SeqId seq) { Of(seq).draft.Clear(); }

  const Draft& draft(SeqId seq) const { return Of(seq).draft; }
  // survival[i]: the chance that the first i + 1 tokens of the draft are all accepted. Empty if there is no draft.
  std::span<const double> survival(SeqId seq) const;

  // Whether another drafter may continue the draft, because it is likely to be accepted completely.
  bool MayBeContinued(SeqId seq) const;

  // Offers what the drafter of `record` proposed. The drafter becomes the source of the tokens that have none yet. Its
  // draft replaces the selected one if it continues that one or is worth more at `row_price`. `blind`: the draft must
  // be judged without looking at its tokens, because they are random draws that may be rejected: if some draws were
  // preferred, the text would not have the target's distribution.
  void Offer(DrafterRecord& record, Proposal& proposal, bool blind, double row_price);

  // Shortens the draft to its first `rows` tokens, which are verified.
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
