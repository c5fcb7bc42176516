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
// Wrong tokens have to leave the memory again. Where that costs something (a state is saved before the draft and
// restored when more was wrong than the engine takes back for nothing, and the tokens since then are rows of the next
// step once more), the cost is part of the expected seconds.
//
// How a step is computed, and so what it costs, only the engine knows: the policy asks it for the layout of every step
// it considers (base/step_layout.h).
//
// All that rests on the cost curve, so the curve is checked: while drafts pay, a plain step is taken now and then, and
// numbers of rows that might be better than they look are tried, at the expense of a small share of the tokens.
//
// Pure; no allocation once the vectors have grown.
#pragma once

#include <cstddef>
#include <functional>
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

struct StepOutlook {
  std::span<const SequenceOutlook> sequences;  // in ascending order
  std::span<const SequenceRows> prompts = {};  // of sequences that do not generate yet; in ascending order
  int context = 0;                             // mean length of the generating sequences
  int last_rows = 0;  // of the step before; 0 if it had other sequences or prompts, or was computed in several parts

  int generating() const { return static_cast<int>(sequences.size()); }
  int fixed_rows() const {
    int rows = 0;
    for (const SequenceRows& prompt : prompts) rows += prompt.rows;
    for (const SequenceOutlook& sequence : sequences) rows += sequence.rows;
    return rows;
  }
};

// What it costs a sequence to take back the tokens of its draft that are wrong, beyond those that the engine takes back
// for nothing (StepLayout::free_rollback).
struct RollbackCost {
  double save_seconds = 0;     // before a draft that is longer
  double restore_seconds = 0;  // when more are wrong; all its rows are then decoded again
};

class Policy {
 public:
  // `curve` and `rollback` may change from step to step.
  Policy(const CostCurve& curve, const RollbackCost& rollback, LayOutStep lay_out, const PolicyTuning& tuning = {});

  // For each sequence of the step, how many tokens of its draft to verify. `max_rows`: draft rows the batch has room
  // for. `rows` is as long as `step.sequences`.
  void ChooseRows(const StepOutlook& step, int max_rows, std::span<int> rows);

  // How long a draft is worth making by a drafter that needs `round_seconds` to add one token to all drafts, given what
  // it can expect. 0 = none.
  int ChooseRounds(const StepOutlook& step, double round_seconds);

  // What the best choice of rows would be worth, in tokens, over a step without drafts.
  double Gain(const StepOutlook& step, double draft_seconds);

  // A draft token is worth making only if its survival is at least this, given what one more costs.
  double MinSurvival(const StepOutlook& step, double token_seconds);

  // A step is over: it had `draft_rows` more, committed `tokens` and took `seconds`, drafting included.
  void Observe(const StepOutlook& step, int draft_rows, int tokens, double seconds);

  // How long the step would take without drafts, prompts, and rows that are decoded again.
  double PlainSeconds(const StepOutlook& step);

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

  // What it may cost to take back the draft of one sequence. [i] is about the case that at most the first i tokens of
  // the draft are right, and more than that has to be taken back.
  struct Risk {
    std::vector<double> chance;          // of that case
    std::vector<double> replay_seconds;  // expected, by which the next step then takes longer
  };

  double PlainRate(const StepOutlook& step) { return step.generating() / PlainSeconds(step); }
  double RateWith(const StepOutlook& step, double draft_seconds);
  void BeginOptions(const StepOutlook& step);
  void AddToken(const StepOutlook& step, size_t which, size_t place);
  double RollbackSeconds(const StepOutlook& step, size_t which, int free_tokens);
  void AddOption(const StepOutlook& step, double draft_seconds);
  void ListOptions(const StepOutlook& step, int max_rows);
  void ListLevels(const StepOutlook& step, int max_rows);
  double GainOf(size_t option, double rate) const;
  size_t BestOption(double rate, const StepOutlook& step);
  size_t OrTrial(size_t best, double rate, const StepOutlook& step);
  size_t OrPlain(size_t chosen, const StepOutlook& step);
  void CountRun(const StepOutlook& step, int draft_rows);

  const CostCurve& curve_;
  const RollbackCost& rollback_;
  const LayOutStep lay_out_;
  const PolicyTuning tuning_;
  double tokens_ = 0, plain_tokens_ = 0;  // exponentially forgotten: committed, and what plain steps would have
  double speed_up_ = 1;
  double credit_;  // tokens that trials may cost
  int steps_since_plain_ = 0, plain_interval_;
  int plain_steps_left_ = 0;  // of a trial
  bool trying_plain_ = false;
  int run_ = 0;      // steps in a row with as many rows, drafts among them
  double mean_run_;  // of those before

  // Scratch.
  std::vector<Option> options_;
  std::vector<Next> next_;  // heap
  std::vector<size_t> order_;
  size_t levels_begin_ = 0;          // in options_
  std::vector<SequenceRows> rows_;   // of the option being listed, prompts included
  std::vector<size_t> place_;        // in rows_, by generating sequence
  std::vector<int> drafted_;         // of the option being listed, by generating sequence
  double tokens_so_far_ = 0;         // of the option being listed: draft tokens expected to be right
  std::vector<Risk> risks_;          // by generating sequence, filled as far as it was asked for
  std::vector<SequenceRows> plain_;  // scratch of PlainSeconds
  StepLayout layout_;
};

}  // namespace outrider
