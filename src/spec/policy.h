// Policy: how many draft tokens a step should verify.
//
// A step of n sequences commits n tokens plus the accepted draft tokens, and takes longer the more rows it has. In the
// long run the number of tokens per second is highest if each step maximises
//
//     expected tokens - rate * expected seconds
//
// where the rate is the one at which later tokens will come (renewal reward: a token gained now saves the time that it
// would take later). It lies between the rate of the last hundred tokens and the rate that this step promises, and is
// never below that of plain decoding. No draft at all is always one of the choices, so drafts that do not pay are not
// verified; under load, when rows are expensive, drafts become shorter by themselves.
//
// Rejected tokens have to be removed from the memory (rollback). If that costs time, the cost is part of the expected
// seconds: a state is saved before the draft; if more tokens are rejected than the engine takes back for free, the
// state is restored, and the tokens after it are decoded again in the next step.
//
// Only the engine knows how a step is computed, and so what it costs: the policy asks it for the layout of every step
// that it considers (base/step_layout.h). Two times are only estimated, as if all rows were computed at once: by how
// much the steps after a rollback take longer, because these are not known yet; and the price of one more row
// (MinSurvival), which only decides where a draft ends.
//
// All of this depends on the cost curve, so the curve is checked: while drafts pay, a plain step is taken now and then,
// and numbers of rows that may be better than the curve says are tried. These trials cost a small share of the tokens.
//
// Answers depend only on the arguments and on earlier calls. Nothing is allocated once the vectors have grown.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/step_layout.h"
#include "spec/cost_curve.h"
#include "spec/tuning.h"

namespace outrider {

// Engine::LayOut of the target: replaces `layout` by that of a step with these rows, in ascending order of sequences.
using LayOutStep = std::function<void(std::span<const SequenceRows> step, StepLayout* layout)>;

// survival[i]: the chance that the first i + 1 tokens of one sequence's draft are all right. Never increasing.
using Survival = std::span<const double>;

// A sequence that generates in a step.
struct SequenceOutlook {
  SeqId seq = 0;
  int rows = 1;            // without a draft: its next row, and rows for tokens that are decoded again after a rollback
  Survival survival = {};  // of its draft; empty = none
};

// What a step may spend, so that no request becomes slower than it may (PaceBudget).
struct StepBudget {
  // For the whole step, with the drafts that are made from now on, if nothing of them is accepted. The step may take as
  // much longer as plain steps would take for the draft tokens that can be relied on.
  double max_seconds = std::numeric_limits<double>::infinity();
  std::span<const double> savings = {};  // of each sequence, in plain steps; empty = no limit
  double patience = 1;                   // a switch of shapes may be paid off in so many steps
};

struct StepOutlook {
  std::span<const SequenceOutlook> sequences;  // in ascending order
  std::span<const SequenceRows> others = {};   // without a draft: prompts, mostly; in ascending order
  int context = 0;                             // mean length of the generating sequences
  int last_rows = 0;  // of the step before; 0 if it had other sequences or prompts, or was computed in several parts
  StepBudget budget = {};

  int generating() const { return static_cast<int>(sequences.size()); }
  int fixed_rows() const {
    int rows = 0;
    for (const SequenceRows& other : others) rows += other.rows;
    for (const SequenceOutlook& sequence : sequences) rows += sequence.rows;
    return rows;
  }
};

// What the rollback of rejected draft tokens costs, if there are more than the engine takes back for free
// (StepLayout::free_rollback).
struct RollbackCost {
  double save_seconds = 0;     // to save a state before a draft with more tokens
  double restore_seconds = 0;  // to restore it when more are rejected; the rows after it are then decoded again
};

class Policy {
 public:
  // `curve` and `rollback` may change from step to step.
  Policy(const CostCurve& curve, const RollbackCost& rollback, LayOutStep lay_out, const PolicyTuning& tuning = {});

  // Chooses for each sequence of the step how many tokens of its draft to verify. `max_rows`: draft rows that the batch
  // has room for. `rows` is as long as `step.sequences`.
  void ChooseRows(const StepOutlook& step, int max_rows, std::span<int> rows);

  // How many tokens a drafter should draft if it needs `round_seconds` to add one token to all drafts. `step` has the
  // survival that its drafts can be expected to have. 0 = none.
  int ChooseDraftLength(const StepOutlook& step, double round_seconds);

  // What the best choice of rows gains over a step without drafts, in tokens.
  double Gain(const StepOutlook& step, double draft_seconds);

  // A draft token is worth making only if its survival is at least this, if making it takes `token_seconds`. An
  // estimate: it takes all rows of a step for one part.
  double MinSurvival(const StepOutlook& step, double token_seconds);

  // A step is over: it had `draft_rows` draft rows, committed `tokens` tokens and took `seconds`, drafting included.
  void Observe(const StepOutlook& step, int draft_rows, int tokens, double seconds);

  // How long a plain step of the same sequences would take: one row each, and nothing else.
  double PlainSeconds(const StepOutlook& step);

  double speed_up() const { return speed_up_; }  // of the last hundred tokens or so over plain, at least 1

 private:
  // A choice of draft rows: how many of these tokens are expected to be accepted, and how long the step takes.
  struct Option {
    double tokens, seconds;
    double risk_seconds;     // the same with all of a switch of shapes that the budget must pay for
    double reliable_tokens;  // accepted tokens that even the sequence with the fewest of them can rely on
    bool known;              // whether its time can be told: see HasKnownShape
  };

  // The next token of a draft that is not among the rows yet.
  struct Next {
    double survival;
    size_t sequence, place;
  };

  // What the rollback of one sequence's draft may cost. Element i of both lists is about the case that i tokens of the
  // draft or fewer are accepted, so that a state has to be restored.
  struct Risk {
    std::vector<double> chance;          // the chance of that case
    std::vector<double> replay_seconds;  // that chance times the time by which the next step takes longer; an estimate
  };

  double PlainRate(const StepOutlook& step) { return step.generating() / PlainSeconds(step); }
  double RateWith(const StepOutlook& step, double draft_seconds);
  void BeginOptions(const StepOutlook& step);
  void AddToken(const StepOutlook& step, size_t which, size_t place);
  double RollbackSeconds(const StepOutlook& step, size_t which);
  void AddOption(const StepOutlook& step, double draft_seconds);
  double ReliableTokens(Survival drafted, double loss, double savings) const;
  void ListOptions(const StepOutlook& step, int max_rows);
  void ListLevels(const StepOutlook& step, int max_rows);
  double GainOf(size_t option, double rate) const;
  bool HasKnownShape() const;
  bool Affordable(size_t option, double draft_seconds, const StepOutlook& step) const;
  size_t BestOption(double rate, double draft_seconds, const StepOutlook& step);
  size_t OrTrial(size_t best, double rate, const StepOutlook& step);
  size_t OrPlain(size_t chosen, const StepOutlook& step);
  void CountRun(const StepOutlook& step, int draft_rows);

  const CostCurve& curve_;
  const RollbackCost& rollback_;
  const LayOutStep lay_out_;
  const PolicyTuning tuning_;
  double tokens_ = 0, plain_tokens_ = 0;  // committed, and those of plain steps in the same time; older ones count less
  double speed_up_ = 1;
  double credit_;  // tokens that trials of numbers of rows may cost
  int steps_since_plain_ = 0, plain_interval_;
  int plain_steps_left_ = 0;  // of a trial
  bool trying_plain_ = false;
  int run_ = 0;      // steps in a row with drafts and with the same number of rows
  double mean_run_;  // mean length of earlier runs

  // Scratch.
  std::vector<Option> options_;
  std::vector<Next> next_;  // heap
  std::vector<size_t> order_;
  size_t levels_begin_ = 0;          // in options_
  std::vector<SequenceRows> rows_;   // of the option being listed, prompts included
  std::vector<size_t> place_;        // in rows_, by generating sequence
  std::vector<int> drafted_;         // of the option being listed, by generating sequence
  double tokens_so_far_ = 0;         // draft tokens expected to be right
  std::vector<Risk> risks_;          // by generating sequence, filled as far as it was asked for
  double plain_seconds_ = 0;         // of the step whose options are listed
  std::vector<SequenceRows> plain_;  // scratch of PlainSeconds
  StepLayout layout_;
};

}  // namespace outrider
