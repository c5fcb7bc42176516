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
// What is wrong has to leave the memory again. Where that costs something (a state is saved before the draft, restored
// when more was wrong than the backend can take back, and the tokens since are rows of the next step once more), it is
// part of the expected seconds.
//
// All that rests on the cost curve, so it is checked: while drafts pay a plain step is taken now and then, and numbers
// of rows that might be better than they look are tried, at the expense of a small share of the tokens.
//
// Pure; no allocation once the vectors have grown.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "spec/cost_curve.h"

namespace outrider {

// survival[i]: the chance that the first i + 1 tokens of one sequence's draft are all right. Never increasing.
using Survival = std::span<const double>;

// A sequence that generates in a step.
struct SequenceOutlook {
  int rows = 1;       // it has anyway: its next one, and tokens that are decoded again after a rollback
  Survival survival;  // of its draft; empty = none
};

struct StepOutlook {
  std::span<const SequenceOutlook> sequences;
  int prompt_rows = 0;   // of sequences that do not generate yet
  int context = 0;       // mean length of the sequences
  int last_rows = 0;     // of the step before; 0 if it was not of as many sequences and prompts, or of unequal width
  int groups = 1;        // of sequences with consecutive ids: others are not computed together
  int plain_groups = 1;  // the same if each has one row

  int generating() const { return static_cast<int>(sequences.size()); }
  int fixed_rows() const {
    int rows = prompt_rows;
    for (const SequenceOutlook& sequence : sequences) rows += sequence.rows;
    return rows;
  }
};

// What it costs a sequence to take back the tokens of its draft that are wrong.
struct RollbackCost {
  // That many can be taken back for nothing: in a step whose sequences are neighbours with as many rows, and in any.
  int free_if_even = std::numeric_limits<int>::max();
  int free_always = std::numeric_limits<int>::max();
  double save_seconds = 0;     // before a draft that is longer
  double restore_seconds = 0;  // when more are wrong; all its rows are then decoded again
};

class Policy {
 public:
  // Both may change from step to step.
  Policy(const CostCurve& curve, const RollbackCost& rollback) : curve_(curve), rollback_(rollback) {}

  // For each sequence of the step, how many tokens of its draft to verify. `most_rows`: draft rows the batch has room
  // for. `rows` is as long as `step.sequences`.
  void ChooseRows(const StepOutlook& step, int most_rows, std::span<int> rows);

  // How long a draft is worth making by a drafter that needs `round_seconds` to add one token to all drafts, given what
  // it can expect. 0 = none.
  int ChooseRounds(const StepOutlook& step, double round_seconds);

  // What the best choice of rows would be worth, in tokens, over a step without drafts.
  double Gain(const StepOutlook& step, double draft_seconds);

  // A draft token is worth making only if its survival is at least this, given what one more costs.
  double LeastSurvival(const StepOutlook& step, double token_seconds) const;

  // A step is over: it had `draft_rows` more, committed `tokens` and took `seconds`, drafting included.
  void Observe(const StepOutlook& step, int draft_rows, int tokens, double seconds);

  // How long the step would take without drafts, prompts, and rows that are decoded again.
  double PlainSeconds(const StepOutlook& step) const;

  double speed_up() const { return speed_up_; }  // of the last hundred tokens or so over plain, at least 1

 private:
  // A choice of rows beyond the fixed ones: draft tokens expected from it, and how long the step takes.
  struct Option {
    double tokens, seconds;
  };

  // The next token of a draft that is not among the rows yet.
  struct Next {
    double survival;
    size_t sequence, place;
  };

  // Of one sequence and its draft so far.
  struct Risk {
    double chance = 0;          // to be wrong by more than can be taken back for nothing
    double replay_seconds = 0;  // times what the next step takes longer for it
    double seconds = 0;         // what that comes to
  };
  using Risks = std::vector<Risk>;  // by sequence

  static constexpr double kTypicalRun = 4;  // before anything is known

  double PlainRate(const StepOutlook& step) const { return step.generating() / PlainSeconds(step); }
  double RateWith(const StepOutlook& step, double draft_seconds) const;
  void BeginOptions(const StepOutlook& step);
  void AddToken(const StepOutlook& step, size_t which, size_t place);
  void AddRisk(const StepOutlook& step, size_t which, size_t place, int free_tokens, Risks& risks) const;
  int Parts(const StepOutlook& step) const;
  void AddOption(const StepOutlook& step, double draft_seconds);
  void ListOptions(const StepOutlook& step, int most_rows);
  void ListLevels(const StepOutlook& step, int most_rows);
  double GainOf(size_t option, double rate) const;
  size_t BestOption(double rate, const StepOutlook& step) const;
  size_t OrTrial(size_t best, double rate, const StepOutlook& step);
  size_t OrPlain(size_t chosen, const StepOutlook& step);
  void CountRun(const StepOutlook& step, int draft_rows);

  const CostCurve& curve_;
  const RollbackCost& rollback_;
  double tokens_ = 0, plain_tokens_ = 0;  // exponentially forgotten: committed, and what plain steps would have
  double speed_up_ = 1;
  double credit_ = 2;  // tokens that trials may cost
  int steps_since_plain_ = 0, plain_interval_ = 16;
  int plain_steps_left_ = 0;  // of a trial
  bool trying_plain_ = false;
  int run_ = 0;                    // steps in a row with as many rows, drafts among them
  double mean_run_ = kTypicalRun;  // of those before

  // Scratch.
  std::vector<Option> options_;
  std::vector<Next> next_;  // heap
  std::vector<size_t> order_;
  size_t levels_begin_ = 0;        // in options_
  std::vector<int> sequences_at_;  // of the option being listed: how many sequences have more than i rows
  int rows_so_far_ = 0;            // of the option being listed
  double tokens_so_far_ = 0;       // of the option being listed: draft tokens expected to be right
  Risks risks_if_even_, risks_;    // and what it may cost to take back the others
};

}  // namespace outrider
