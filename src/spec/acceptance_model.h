// AcceptanceModel: how likely a drafter's next token is right, learned from what happened to its earlier ones.
//
// Drafters report a confidence for each token, but how reliable it is differs between drafters and between texts. Also,
// right and wrong tokens come in runs: a drafter that copies a passage may be right for fifty tokens and then wrong for
// two hundred. So the odds are learned as a function of the confidence and of the form: how many tokens in a row were
// right, or wrong, before. A draft token is only verified if all draft tokens before it are right, so its form is
// known: the present run of the sequence, extended by the tokens before it in the draft.
//
// The function belongs to the drafter and is learned from all sequences. In addition each sequence has one number: by
// how much its log odds are better than usual.
//
// (At first we counted outcomes in a table of confidences and forms. Its estimates were too high by a quarter, because
// it counted each token of a long run as an independent observation. docs/SPECULATION.md has the numbers.)
//
// Answers depend only on the arguments and on earlier calls. A call takes constant time, and nothing is allocated after
// construction.
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

  // The next token of a draft, before which all draft tokens were right, was right or wrong.
  void Observe(SeqId seq, float confidence, bool right);

  // P(right | all draft tokens before it are right) for the token at `place` of a draft (0 = first).
  double Estimate(SeqId seq, int place, float confidence) const;

  // The same before the draft is made, when the confidence is not known yet.
  double TypicalAcceptance(SeqId seq, int place) const;

 private:
  // Inputs of the filter that describe the form: a constant 1, then for each length in kRightRuns and kWrongRuns (see
  // acceptance_model.cc) 1 if the run has reached it, else 0.
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
