// AcceptanceModel: how likely a drafter's next token is right, learned from what happened to its earlier ones.
//
// Drafters say how sure they are; whether that means anything differs from drafter to drafter and from text to text.
// And drafters have runs: one that copies a passage is right for fifty tokens and then wrong for two hundred. So
// outcomes are counted by confidence and by form, which is how many tokens in a row were right, or wrong, before. A
// draft token is only ever asked about on the condition that those before it are right, so its form is known: the run
// that the sequence is in, continued by its place in the draft.
//
// These counts are the drafter's record over all sequences and are forgotten slowly. What is special about one sequence
// is a single number, by how much the odds are better there than the record says, which follows within some dozens of
// tokens.
//
// Pure; constant time per call; no allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/token.h"

namespace outrider {

class AcceptanceModel {
 public:
  explicit AcceptanceModel(int n_sequences);

  void BeginSequence(SeqId seq);  // a new request: what was learned from the last one here is forgotten

  // A token at `place` (0 = first of its draft), all before it right, was right or wrong.
  void Observe(SeqId seq, int place, float confidence, bool right);

  // P(right | all before it in its draft right).
  double Estimate(SeqId seq, int place, float confidence) const;

  // The same before the draft is made, when its confidence is not known.
  double TypicalAcceptance(SeqId seq, int place) const;

 private:
  static constexpr int kForms = 10;
  static constexpr int kBins = 8;  // of confidence

  // Outcomes, exponentially forgotten.
  struct Count {
    double right = 0, all = 0;
    double time = 0;  // of the last update, in observations of the model
  };

  // What one sequence has shown.
  struct Sequence {
    int run = 0;           // tokens right in a row; negative: wrong in a row
    double advantage = 0;  // in log odds, over the record
    double variance = 0;   // of our knowledge of it
  };

  static size_t Form(int run, int place);
  static size_t Bin(float confidence);
  void Take(Count& count, bool right) const;
  double Share(const Count& count, double prior, double prior_weight) const;
  double Record(size_t form, float confidence) const;

  double observations_ = 0;
  std::array<std::array<Count, kBins>, kForms> by_form_and_bin_{};
  std::array<Count, kBins> by_bin_{};
  std::array<Count, kForms> by_form_{};
  Count overall_;
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
