// AcceptanceModel: how likely a drafter's next token is right, learned from what happened to its earlier ones.
//
// Drafters say how sure they are; whether that means anything differs from drafter to drafter and from text to text.
// And drafters have runs: one that copies a passage is right for fifty tokens and then wrong for two hundred. So the
// odds are learned as a function of the confidence and of form, which is how many tokens in a row were right, or wrong,
// before. A draft token is only ever asked about on the condition that those before it are right, so its form is known:
// the run that the sequence is in, continued by its place in the draft.
//
// The function is the drafter's, learned from all sequences. What is special about one sequence is a single number, by
// how much the odds are better there.
//
// (Counting outcomes in a table of confidences and forms, as we did at first, was too sure by a quarter: the many
// tokens of one long run are one observation, and a table takes them for as many. docs/SPECULATION.md has the numbers.)
//
// Pure; constant time per call; no allocation after construction.
#pragma once

#include <cstddef>
#include <vector>

#include "base/token.h"
#include "spec/odds_filter.h"
#include "spec/tuning.h"

namespace outrider {

class AcceptanceModel {
 public:
  explicit AcceptanceModel(int n_sequences, const AcceptanceTuning& tuning = {});

  void BeginSequence(SeqId seq);  // a new request: what was learned from the last one here is forgotten

  // The next token, all before it in its draft right, was right or wrong.
  void Observe(SeqId seq, float confidence, bool right);

  // P(right | all before it in its draft right) of the token at `place` (0 = first of its draft).
  double Estimate(SeqId seq, int place, float confidence) const;

  // The same before the draft is made, when its confidence is not known.
  double TypicalAcceptance(SeqId seq, int place) const;

 private:
  // The same for all tokens; then one more number for each length that a run of right or of wrong tokens has reached.
  static constexpr size_t kFormNumbers = 10;
  using ByForm = OddsFilter<kFormNumbers>;
  using ByFormAndConfidence = OddsFilter<kFormNumbers + 1>;

  // What one sequence has shown.
  struct Sequence {
    int run = 0;  // tokens right in a row; negative: wrong in a row
    Belief advantage, typical_advantage;
  };

  static ByForm::Numbers Form(int run, int place);
  ByFormAndConfidence::Numbers FormAndConfidence(int run, int place, float confidence) const;

  const AcceptanceTuning tuning_;
  ByFormAndConfidence odds_;
  ByForm typical_odds_;
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
