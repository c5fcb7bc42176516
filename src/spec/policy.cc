#include "spec/policy.h"

#include <algorithm>
#include <cmath>

namespace outrider {

Policy::Policy(const CostCurve& curve, const RollbackCost& rollback, LayOutStep lay_out, const PolicyTuning& tuning)
    : curve_(curve),
      rollback_(rollback),
      lay_out_(std::move(lay_out)),
      tuning_(tuning),
      credit_(tuning.first_credit),
      plain_interval_(tuning.first_plain_interval),
      mean_run_(tuning.typical_run) {}

double Policy::PlainSeconds(const StepOutlook& step) {
  plain_.clear();
  for (const SequenceOutlook& sequence : step.sequences) plain_.push_back({sequence.seq, 1});
  lay_out_(plain_, &layout_);
  return curve_.Seconds(layout_.parts, step.context);
}

// The rate (tokens per second) at which time is valued: a token gained now saves the time that it would take later.
// Later tokens will come at a rate between the recent one and the one that the best of these options promises.
double Policy::RateWith(const StepOutlook& step, double draft_seconds) {
  double here = 0;
  for (const Option& option : options_)
    here = std::max(here, (step.generating() + option.tokens) / (option.seconds + draft_seconds));
  const double plain = PlainRate(step);
  return std::max(std::sqrt(plain * speed_up_ * here), plain);
}

// The first option: the rows that the step has without drafts.
void Policy::BeginOptions(const StepOutlook& step) {
  rows_.clear();
  place_.clear();
  auto other = step.others.begin();
  for (const SequenceOutlook& sequence : step.sequences) {
    for (; other != step.others.end() && other->seq < sequence.seq; ++other) rows_.push_back(*other);
    place_.push_back(rows_.size());
    rows_.push_back({sequence.seq, sequence.rows});
  }
  rows_.insert(rows_.end(), other, step.others.end());
  drafted_.assign(step.sequences.size(), 0);
  tokens_so_far_ = 0;
  plain_seconds_ = PlainSeconds(step);
  risks_.resize(std::max(risks_.size(), step.sequences.size()));
  for (Risk& risk : risks_) {
    risk.chance.clear();
    risk.replay_seconds.clear();
  }
}

// Adds the token at `place` of the draft of sequence `which` to the option being listed.
void Policy::AddToken(const StepOutlook& step, size_t which, size_t place) {
  ++rows_[place_[which]].rows;
  ++drafted_[which];
  tokens_so_far_ += step.sequences[which].survival[place];
}

// The expected cost of the rollback of sequence `which` in a step with `layout_`. It costs nothing if the engine takes
// all rejected tokens of its draft back for free. What the next steps look like is not known: they are taken for steps
// of one part with the same sequences.
double Policy::RollbackSeconds(const StepOutlook& step, size_t which) {
  const int drafted = drafted_[which];
  if (!layout_.NeedsSavedState(drafted)) return 0;
  const SequenceOutlook& sequence = step.sequences[which];
  const double plain = curve_.Seconds(step.generating(), step.context);
  Risk& risk = risks_[which];
  const auto cases = static_cast<size_t>(drafted - layout_.free_rollback);
  for (size_t right = risk.chance.size(); right < cases; ++right) {
    const double chance = (right == 0 ? 1 : sequence.survival[right - 1]) - sequence.survival[right];
    const int rows = step.generating() + sequence.rows + static_cast<int>(right);
    const double replay = chance * std::max(0.0, curve_.Seconds(rows, step.context) - plain);
    risk.chance.push_back((right == 0 ? 0 : risk.chance[right - 1]) + chance);
    risk.replay_seconds.push_back((right == 0 ? 0 : risk.replay_seconds[right - 1]) + replay);
  }
  const double chance = risk.chance[cases - 1], replay = risk.replay_seconds[cases - 1];

  // After the rollback tokens are decoded again in every step, until a draft is accepted completely or a step has no
  // draft. A step without a draft loses what a draft would have gained.
  const double until_right = replay / std::max(sequence.survival[static_cast<size_t>(drafted) - 1], 1e-9);
  const double until_plain = replay + tuning_.plain_step_loss * chance * plain * (1 - 1 / speed_up_);
  return rollback_.save_seconds + chance * rollback_.restore_seconds + std::min(until_right, until_plain);
}

// Adds the rows listed so far as an option, with its price. Only options with drafts pay for a switch of shapes: if
// plain steps are better, many of them follow each other, and the single switch to the first one does not matter.
void Policy::AddOption(const StepOutlook& step, double draft_seconds) {
  lay_out_(rows_, &layout_);
  double seconds = curve_.Seconds(layout_.parts, step.context) + draft_seconds;
  int rows = 0;
  for (const SequenceRows& sequence : rows_) rows += sequence.rows;
  const bool has_drafts = !options_.empty();
  double switches = 0, more_at_risk = 0;
  if (has_drafts && layout_.parts.size() > 1) {
    switches = static_cast<double>(layout_.parts.size());
  } else if (has_drafts && rows != step.last_rows) {
    switches = 2 / mean_run_;  // to this shape and back, once for all steps of a run
    more_at_risk = std::max(0.0, 2 / std::max(step.budget.patience, 1.0) - switches);
  }
  seconds += switches * curve_.SwitchSeconds();
  for (size_t i = 0; i < drafted_.size(); ++i) seconds += RollbackSeconds(step, i);
  const double risk_seconds = seconds + more_at_risk * curve_.SwitchSeconds();
  double reliable = tokens_so_far_;
  for (size_t i = 0; i < step.budget.savings.size(); ++i) {
    const Survival drafted = step.sequences[i].survival.first(static_cast<size_t>(drafted_[i]));
    reliable = std::min(reliable, ReliableTokens(drafted, risk_seconds / plain_seconds_ - 1, step.budget.savings[i]));
  }
  options_.push_back({.tokens = tokens_so_far_,
                      .seconds = seconds,
                      .risk_seconds = risk_seconds,
                      .reliable_tokens = reliable,
                      .known = !has_drafts || HasKnownShape()});
}

// How many accepted tokens of a draft a sequence can rely on that loses `loss` plain steps if none is accepted. Tokens
// that are very likely to be accepted are always relied on: drafts are the only way out of a debt. Of all tokens
// together the certainty equivalent is: the number that is worth as much as the uncertain one to somebody with constant
// aversion to risk, -log E[exp(-aversion * accepted)] / aversion. Losses and gains of many small steps even out, so the
// aversion is small where little is at stake.
double Policy::ReliableTokens(Survival drafted, double loss, double savings) const {
  const double aversion = tuning_.caution * loss * loss / (1 + std::max(savings, 0.0));
  const double kept = std::exp(-aversion);
  double likely = 0, all = 0, weight = 1, expected = 1;  // of exp(-aversion * accepted)
  for (const double chance : drafted) {
    if (chance >= tuning_.likely_survival) likely += chance;
    all += chance;
    expected -= chance * weight * (1 - kept);
    weight *= kept;
  }
  constexpr double kNoAversion = 1e-6;
  return std::max(likely, aversion < kNoAversion ? all : -std::log(expected) / aversion);
}

// options_[n] is the option with the n draft rows that survive most likely; order_[n] is the sequence whose draft has
// the next row. If there are several drafts, options in which all have the same length are added, because an engine may
// compute sequences with unequal rows in several parts.
void Policy::ListOptions(const StepOutlook& step, int max_rows) {
  const auto less = [](const Next& a, const Next& b) { return a.survival < b.survival; };
  next_.clear();
  order_.clear();
  options_.clear();
  BeginOptions(step);
  AddOption(step, 0);
  for (size_t i = 0; i < step.sequences.size(); ++i) {
    if (!step.sequences[i].survival.empty()) next_.push_back({step.sequences[i].survival[0], i, 0});
  }
  const bool several = next_.size() > 1;
  std::make_heap(next_.begin(), next_.end(), less);
  for (int rows = 1; rows <= max_rows && !next_.empty(); ++rows) {
    std::pop_heap(next_.begin(), next_.end(), less);
    Next& next = next_.back();
    const SequenceOutlook& sequence = step.sequences[next.sequence];
    AddToken(step, next.sequence, next.place);
    AddOption(step, 0);
    order_.push_back(next.sequence);
    if (++next.place < sequence.survival.size()) {
      next.survival = sequence.survival[next.place];
      std::push_heap(next_.begin(), next_.end(), less);
    } else {
      next_.pop_back();
    }
  }
  levels_begin_ = options_.size();
  if (several) ListLevels(step, max_rows);
}

// options_[levels_begin_ + n] is the option with the first n + 1 tokens of every draft.
void Policy::ListLevels(const StepOutlook& step, int max_rows) {
  BeginOptions(step);
  int rows = 0;
  for (size_t place = 0;; ++place) {
    int longer = 0;
    for (const SequenceOutlook& sequence : step.sequences) longer += place < sequence.survival.size() ? 1 : 0;
    rows += longer;
    if (longer == 0 || rows > max_rows) return;
    for (size_t i = 0; i < step.sequences.size(); ++i) {
      if (place < step.sequences[i].survival.size()) AddToken(step, i, place);
    }
    AddOption(step, 0);
  }
}

double Policy::GainOf(size_t option, double rate) const {
  return options_[option].tokens - rate * (options_[option].seconds - options_[0].seconds);
}

// Where it costs time to change the shape of a step, a shape that was never computed costs far more, and what it takes
// cannot be guessed from its neighbours. So only shapes that the calibration has measured are used there.
bool Policy::HasKnownShape() const {
  return curve_.SwitchSeconds() == 0 ||
         std::all_of(layout_.parts.begin(), layout_.parts.end(), [&](int rows) { return curve_.Measured(rows); });
}

// Whether the step may take so long (PaceBudget). A step without drafts always may.
bool Policy::Affordable(size_t option, double draft_seconds, const StepOutlook& step) const {
  const Option& chosen = options_[option];
  return option == 0 || (chosen.known && chosen.risk_seconds + draft_seconds <=
                                             step.budget.max_seconds + plain_seconds_ * chosen.reliable_tokens);
}

size_t Policy::BestOption(double rate, double draft_seconds, const StepOutlook& step) {
  const double min_rate =
      PlainRate(step) * (1 + std::min(tuning_.min_return * (step.generating() - 1), tuning_.max_return));
  size_t best = 0;
  for (size_t option = 1; option < options_.size(); ++option) {
    if (GainOf(option, rate) > GainOf(best, rate) && GainOf(option, min_rate) > 0 &&
        Affordable(option, draft_seconds, step))
      best = option;
  }
  return best;
}

// The curve may be wrong about numbers of rows that have not been measured for a long time. A number that might pay
// after all is tried, as long as the credit covers the expected loss. Returns that option, or `best`. Where a switch of
// shapes costs time, a single step of another shape would tell nothing, and cost much.
size_t Policy::OrTrial(size_t best, double rate, const StepOutlook& step) {
  if (curve_.SwitchSeconds() > 0) return best;
  const int fixed_rows = step.fixed_rows();
  const double gain = GainOf(best, rate);
  size_t trial = best;
  double best_hope = gain;
  for (size_t option = 1; option < options_.size(); ++option) {
    const double uncertainty =
        curve_.Uncertainty(fixed_rows + static_cast<int>(option), fixed_rows + static_cast<int>(best), step.context);
    const double loss = gain - GainOf(option, rate);
    const double hope = gain - loss + tuning_.optimism * uncertainty * rate * options_[option].seconds;
    if (!options_[option].known) continue;
    if (loss <= 0 || loss > credit_ || hope <= best_hope || hope - gain < tuning_.min_upside * loss) continue;
    best_hope = hope;
    trial = option;
  }
  credit_ -= gain - GainOf(trial, rate);
  return trial;
}

// While drafts pay, a plain step is taken now and then to measure it. Where a switch of shapes costs time, a few plain
// steps in a row are taken, and the last one is measured. The step after a rollback is not plain even without drafts,
// because tokens are decoded again in it.
size_t Policy::OrPlain(size_t chosen, const StepOutlook& step) {
  const bool plain = step.fixed_rows() == step.generating();
  if (plain_steps_left_ == 0 && chosen > 0 && ++steps_since_plain_ >= plain_interval_) {
    plain_steps_left_ = curve_.SwitchSeconds() > 0 ? tuning_.plain_steps_in_a_row : 1;
  }
  if (chosen == 0 && plain) steps_since_plain_ = plain_steps_left_ = 0;
  if (plain_steps_left_ == 0) return chosen;
  if (plain && --plain_steps_left_ == 0) {
    trying_plain_ = true;
    steps_since_plain_ = 0;
  }
  return 0;
}

void Policy::ChooseRows(const StepOutlook& step, int max_rows, std::span<int> rows) {
  std::fill(rows.begin(), rows.end(), 0);
  ListOptions(step, max_rows);
  const double rate = RateWith(step, 0);
  size_t chosen = BestOption(rate, 0, step);
  trying_plain_ = false;
  if (step.others.empty()) {  // nothing is learned from steps with prompts
    if (step.generating() == 1) chosen = OrTrial(chosen, rate, step);
    chosen = OrPlain(chosen, step);
  }
  if (chosen < levels_begin_) {
    for (size_t i = 0; i < chosen; ++i) ++rows[order_[i]];
  } else {
    const size_t length = chosen - levels_begin_ + 1;
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<int>(std::min(length, step.sequences[i].survival.size()));
  }
}

int Policy::ChooseDraftLength(const StepOutlook& step, double round_seconds) {
  options_.clear();
  BeginOptions(step);
  AddOption(step, 0);
  for (size_t round = 0;; ++round) {
    bool drafting = false;
    for (size_t i = 0; i < step.sequences.size(); ++i) {
      if (round >= step.sequences[i].survival.size()) continue;
      AddToken(step, i, round);
      drafting = true;
    }
    if (!drafting) break;
    AddOption(step, static_cast<double>(round + 1) * round_seconds);
  }
  return static_cast<int>(BestOption(RateWith(step, 0), 0, step));
}

double Policy::Gain(const StepOutlook& step, double draft_seconds) {
  size_t max_rows = 0;
  for (const SequenceOutlook& sequence : step.sequences) max_rows += sequence.survival.size();
  ListOptions(step, static_cast<int>(max_rows));
  const double rate = RateWith(step, draft_seconds);
  return GainOf(BestOption(rate, draft_seconds, step), rate) - rate * draft_seconds;
}

// The price of a row is that of the cheapest number of additional rows, if all rows are one part. Laying out each of
// these steps would take longer than the answer is worth: drafts are priced exactly when they are there.
double Policy::MinSurvival(const StepOutlook& step, double token_seconds) {
  const int fixed_rows = step.fixed_rows();
  const double plain = curve_.Seconds(fixed_rows, step.context);
  double cheapest = curve_.Seconds(fixed_rows + 1, step.context) - plain;
  constexpr int kMaxRows = 16;  // where steps become cheaper with more rows, they do so before that
  for (int rows = 2; rows <= kMaxRows; ++rows) {
    cheapest = std::min(cheapest, (curve_.Seconds(fixed_rows + rows, step.context) - plain) / rows);
  }
  return std::clamp(PlainRate(step) * speed_up_ * (std::max(cheapest, 0.0) + token_seconds), 0.0, 1.0);
}

// Counts how many steps in a row have the same number of rows. This step had `draft_rows` draft rows.
void Policy::CountRun(const StepOutlook& step, int draft_rows) {
  mean_run_ += tuning_.run_forgetting * (tuning_.typical_run - mean_run_);
  if (draft_rows > 0 && step.fixed_rows() + draft_rows == step.last_rows) {
    ++run_;
    return;
  }
  if (run_ > 0) mean_run_ += tuning_.run_share * (run_ - mean_run_);
  run_ = draft_rows > 0 ? 1 : 0;
}

void Policy::Observe(const StepOutlook& step, int draft_rows, int tokens, double seconds) {
  CountRun(step, draft_rows);
  const double kept = std::exp2(-tokens / tuning_.speed_up_half_life);
  tokens_ = tokens_ * kept + tokens;
  plain_tokens_ = plain_tokens_ * kept + PlainRate(step) * seconds;
  if (plain_tokens_ > 0) speed_up_ = std::max(1.0, tokens_ / plain_tokens_);

  credit_ = std::min(credit_ + tuning_.trial_share * tokens, tuning_.max_credit);
  if (!trying_plain_) return;
  const bool surprised = std::abs(curve_.last_ratio() - 1) > tuning_.surprise;
  plain_interval_ = surprised ? tuning_.min_plain_interval : std::min(2 * plain_interval_, tuning_.max_plain_interval);
  trying_plain_ = false;
}

}  // namespace outrider
