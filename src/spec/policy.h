// Policy: how many draft tokens a step should verify.
//
// A step of n sequences commits n tokens plus the draft tokens that are right, and takes as long as its rows. In the
// long run the most tokens per second come from choosing, in each step, what maximises
//
//     expected tokens - rate * expected seconds
//
// where the rate is that at which the tokens that follow will come (renewal reward: a token gained now saves the time
// it would have taken later). It lies between the rate of the last hundred tokens and the one that this step promises,
// and is never less than that of plain decoding. No draft at all is always among the choices, so drafts that do not pay
// are not verified, and under load, when rows are dear, drafts shrink by themselves.
//
// All that rests on the cost curve, so it is checked: while drafts pay a plain step is taken now and then, and numbers
// of rows that might be better than they look are tried, at the expense of a small share of the tokens.
//
// Pure; no allocation once the vectors have grown.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "spec/cost_curve.h"

namespace outrider {

// survival[i]: the chance that the first i + 1 tokens of one sequence's draft are all right. Never increasing.
using Survival = std::span<const double>;

class Policy {
 public:
  explicit Policy(const CostCurve& curve) : curve_(curve) {}

  // For each draft of the step, how many of its tokens to verify. `fixed_rows`: rows the step has anyway, one for each
  // generating sequence and those of prompts; `generating`: how many of them commit a token; `context`: mean length of
  // the sequences; `most_rows`: draft rows the batch has room for. `rows` is as long as `drafts`.
  void ChooseRows(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows,
                  std::span<int> rows);

  // How long a draft is worth making by a drafter that needs `round_seconds` to add one token to all drafts, given what
  // it can expect. 0 = none.
  int ChooseRounds(std::span<const Survival> expected, int fixed_rows, int generating, int context,
                   double round_seconds);

  // What the best choice of rows would be worth, in tokens, over a step without drafts.
  double Gain(std::span<const Survival> drafts, int fixed_rows, int generating, int context, double draft_seconds);

  // A draft token is worth making only if its survival is at least this, given what one more costs.
  double LeastSurvival(int fixed_rows, int generating, int context, double token_seconds) const;

  // A step is over: it committed `tokens` for `generating` sequences and took `seconds`, drafting included.
  void Observe(int fixed_rows, int generating, int context, int tokens, double seconds);

  double speed_up() const { return speed_up_; }  // of the last hundred tokens or so over plain, at least 1

 private:
  // A choice of rows beyond the fixed ones: draft tokens expected from it, and how long the step takes.
  struct Option {
    double tokens, seconds;
  };

  // The next token of a draft that is not among the rows yet.
  struct Next {
    double survival;
    size_t draft, place;
  };

  double Rate(int generating, int context) const;
  double RateWith(int generating, int context, double draft_seconds) const;
  void BeginStep(int fixed_rows, int generating);
  void AddRows(size_t place, int sequences);
  void ListOptions(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows);
  void ListLevels(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows);
  double GainOf(size_t option, double rate) const;
  size_t BestOption(double rate) const;
  size_t OrTrial(size_t best, double rate, int fixed_rows, int context);

  const CostCurve& curve_;
  double tokens_ = 0, plain_tokens_ = 0;  // exponentially forgotten: committed, and what plain steps would have
  double speed_up_ = 1;
  double credit_ = 2;  // tokens that trials may cost
  int steps_since_plain_ = 0, plain_interval_ = 16;
  bool trying_plain_ = false;

  // Scratch.
  std::vector<Option> options_;
  std::vector<Next> next_;  // heap
  std::vector<size_t> order_;
  size_t levels_begin_ = 0;        // in options_
  std::vector<int> sequences_at_;  // of the step: how many sequences have more than i rows
};

}  // namespace outrider
