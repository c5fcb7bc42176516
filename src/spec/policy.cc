#include "spec/policy.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

constexpr double kSpeedUpHalfLife = 100;  // tokens

// Trials of numbers of rows that look worse than the best: how much cheaper than predicted they are hoped to be
// (standard deviations), how much more than the expected loss that must be worth, and what they may cost altogether.
constexpr double kOptimism = 1;
constexpr double kUpside = 2;
constexpr double kTrialShare = 0.003;  // of all tokens
constexpr double kMostCredit = 4;      // tokens

// Drafts are chosen that look best, so they are less good than they look. Where others wait for them, they must promise
// more than they cost in plain decoding.
constexpr double kLeastReturn = 0.1;  // of the cost, for each of the others
constexpr double kMostReturn = 0.5;

// What a step without drafts costs after a rollback, in what it would at the usual speed-up: drafts are made when they
// are better than usual. (From simulation.)
constexpr double kPlainStepLoss = 2;

// Drafts of one length come in runs, of which each costs two switches of shapes, in and out.
constexpr double kRunShare = 0.1;        // how much a new run counts for the length of runs to come
constexpr double kRunForgotten = 0.002;  // per step, so that a time without drafts does not count for ever

// Trials of plain steps while drafts pay: the more often, the further off the last one was.
constexpr double kSurprise = 0.3;
constexpr int kPlainStepsInARow = 3;
constexpr int kLeastInterval = 8;  // steps
constexpr int kMostInterval = 256;

}  // namespace

double Policy::PlainSeconds(const StepOutlook& step) const {
  const int sequences = step.generating();
  return curve_.StepSeconds(std::span(&sequences, 1), step.context, step.plain_groups);
}

// A token gained now saves the time it would have taken later. How soon the tokens that follow come is between what was
// usual lately and what the best of these options promises.
double Policy::RateWith(const StepOutlook& step, double draft_seconds) const {
  double here = 0;
  for (const Option& option : options_)
    here = std::max(here, (step.generating() + option.tokens) / (option.seconds + draft_seconds));
  const double plain = PlainRate(step);
  return std::max(std::sqrt(plain * speed_up_ * here), plain);
}

// The rows a step has anyway.
void Policy::BeginOptions(const StepOutlook& step) {
  sequences_at_.assign(static_cast<size_t>(step.prompt_rows), 1);
  for (const SequenceOutlook& sequence : step.sequences) {
    const auto rows = static_cast<size_t>(sequence.rows);
    if (sequences_at_.size() < rows) sequences_at_.resize(rows);
    for (size_t row = 0; row < rows; ++row) ++sequences_at_[row];
  }
  rows_so_far_ = step.fixed_rows();
  tokens_so_far_ = 0;
  risks_if_even_.assign(step.sequences.size(), {});
  risks_.assign(step.sequences.size(), {});
}

// The token at `place` of the draft of sequence `which` joins the rows.
void Policy::AddToken(const StepOutlook& step, size_t which, size_t place) {
  const SequenceOutlook& sequence = step.sequences[which];
  const size_t row = static_cast<size_t>(sequence.rows) + place;
  if (sequences_at_.size() <= row) sequences_at_.resize(row + 1);
  ++sequences_at_[row];
  ++rows_so_far_;
  tokens_so_far_ += sequence.survival[place];

  AddRisk(step, which, place, rollback_.free_if_even, risks_if_even_);
  AddRisk(step, which, place, rollback_.free_always, risks_);
}

// With one more token there is one more way to be wrong by more than can be taken back for nothing: if exactly `right`
// tokens are right.
void Policy::AddRisk(const StepOutlook& step, size_t which, size_t place, int free_tokens, Risks& risks) const {
  const int right = static_cast<int>(place) - free_tokens;
  if (right < 0) return;
  const SequenceOutlook& sequence = step.sequences[which];
  const auto i = static_cast<size_t>(right);
  const double plain = curve_.Seconds(step.generating(), step.context);
  const double chance = (right == 0 ? 1 : sequence.survival[i - 1]) - sequence.survival[i];
  Risk& risk = risks[which];
  risk.chance += chance;
  risk.replay_seconds +=
      chance * std::max(0.0, curve_.Seconds(step.generating() + sequence.rows + right, step.context) - plain);

  // Tokens are decoded again in every step until a draft is right to its end, or until there is a step without one,
  // which costs what a draft would have gained.
  const double till_right = risk.replay_seconds / std::max(sequence.survival[place], 1e-9);
  const double till_plain = risk.replay_seconds + kPlainStepLoss * risk.chance * plain * (1 - 1 / speed_up_);
  risk.seconds = rollback_.save_seconds + risk.chance * rollback_.restore_seconds + std::min(till_right, till_plain);
}

// Sequences of unequal width, or that are not neighbours, are computed in parts of different shapes.
int Policy::Parts(const StepOutlook& step) const {
  int parts = sequences_at_.empty() ? 0 : step.groups;
  for (size_t i = 1; i < sequences_at_.size(); ++i) parts += sequences_at_[i] != sequences_at_[i - 1] ? 1 : 0;
  return parts;
}

void Policy::AddOption(const StepOutlook& step, double draft_seconds) {
  const bool plain = sequences_at_.size() == 1;
  double seconds =
      curve_.StepSeconds(sequences_at_, step.context, plain ? step.plain_groups : step.groups) + draft_seconds;
  const int parts = Parts(step);
  const bool drafts = !options_.empty();  // one without is judged as of many: if those are better, so is the first
  if (drafts && parts > 1) {
    seconds += parts * curve_.SwitchSeconds();
  } else if (drafts && rows_so_far_ != step.last_rows) {
    seconds += 2 * curve_.SwitchSeconds() / mean_run_;
  }
  for (const Risk& risk : parts == 1 ? risks_if_even_ : risks_) seconds += risk.seconds;
  options_.push_back({tokens_so_far_, seconds});
}

// options_[n] = the n best rows; order_[n] = which draft has the next row after that. With several drafts also each
// common length, since sequences of unequal width are computed in parts.
void Policy::ListOptions(const StepOutlook& step, int most_rows) {
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
  for (int rows = 1; rows <= most_rows && !next_.empty(); ++rows) {
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
  if (several) ListLevels(step, most_rows);
}

// options_[levels_begin_ + n] = the first n + 1 tokens of every draft.
void Policy::ListLevels(const StepOutlook& step, int most_rows) {
  BeginOptions(step);
  int rows = 0;
  for (size_t place = 0;; ++place) {
    int longer = 0;
    for (const SequenceOutlook& sequence : step.sequences) longer += place < sequence.survival.size() ? 1 : 0;
    rows += longer;
    if (longer == 0 || rows > most_rows) return;
    for (size_t i = 0; i < step.sequences.size(); ++i) {
      if (place < step.sequences[i].survival.size()) AddToken(step, i, place);
    }
    AddOption(step, 0);
  }
}

double Policy::GainOf(size_t option, double rate) const {
  return options_[option].tokens - rate * (options_[option].seconds - options_[0].seconds);
}

size_t Policy::BestOption(double rate, const StepOutlook& step) const {
  const double least_rate = PlainRate(step) * (1 + std::min(kLeastReturn * (step.generating() - 1), kMostReturn));
  size_t best = 0;
  for (size_t option = 1; option < options_.size(); ++option) {
    if (GainOf(option, rate) > GainOf(best, rate) && GainOf(option, least_rate) > 0) best = option;
  }
  return best;
}

// The curve may be wrong about rows that it has not seen for long. Those that might pay after all are tried, as far as
// there is credit for what that is expected to cost.
size_t Policy::OrTrial(size_t best, double rate, const StepOutlook& step) {
  const int fixed_rows = step.fixed_rows();
  const double gain = GainOf(best, rate);
  size_t trial = best;
  double most = gain;
  for (size_t option = 1; option < options_.size(); ++option) {
    const double uncertainty =
        curve_.Uncertainty(fixed_rows + static_cast<int>(option), fixed_rows + static_cast<int>(best), step.context);
    const double loss = gain - GainOf(option, rate);
    const double hope = gain - loss + kOptimism * uncertainty * rate * options_[option].seconds;
    if (loss <= 0 || loss > credit_ || hope <= most || hope - gain < kUpside * loss) continue;
    most = hope;
    trial = option;
  }
  credit_ -= gain - GainOf(trial, rate);
  return trial;
}

// While drafts pay a plain step is taken now and then; where a switch costs something, a few in a row, of which the
// last tells what plain steps take. After a rollback a step without drafts is not a plain one yet.
size_t Policy::OrPlain(size_t chosen, const StepOutlook& step) {
  const bool plain = step.fixed_rows() == step.generating();
  if (plain_steps_left_ == 0 && chosen > 0 && ++steps_since_plain_ >= plain_interval_) {
    plain_steps_left_ = curve_.SwitchSeconds() > 0 ? kPlainStepsInARow : 1;
  }
  if (chosen == 0 && plain) steps_since_plain_ = plain_steps_left_ = 0;
  if (plain_steps_left_ == 0) return chosen;
  if (plain && --plain_steps_left_ == 0) {
    trying_plain_ = true;
    steps_since_plain_ = 0;
  }
  return 0;
}

void Policy::ChooseRows(const StepOutlook& step, int most_rows, std::span<int> rows) {
  std::fill(rows.begin(), rows.end(), 0);
  ListOptions(step, most_rows);
  const double rate = RateWith(step, 0);
  size_t chosen = BestOption(rate, step);
  trying_plain_ = false;
  if (step.prompt_rows == 0) {  // steps with prompts in them teach nothing
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

int Policy::ChooseRounds(const StepOutlook& step, double round_seconds) {
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
  return static_cast<int>(BestOption(RateWith(step, 0), step));
}

double Policy::Gain(const StepOutlook& step, double draft_seconds) {
  size_t most_rows = 0;
  for (const SequenceOutlook& sequence : step.sequences) most_rows += sequence.survival.size();
  ListOptions(step, static_cast<int>(most_rows));
  const double rate = RateWith(step, draft_seconds);
  return GainOf(BestOption(rate, step), rate) - rate * draft_seconds;
}

double Policy::LeastSurvival(const StepOutlook& step, double token_seconds) const {
  constexpr int kMostAhead = 16;
  const int fixed_rows = step.fixed_rows();
  const double plain = curve_.Seconds(fixed_rows, step.context);
  double least = curve_.Seconds(fixed_rows + 1, step.context) - plain;
  for (int rows = 2; rows <= kMostAhead; ++rows) {
    least = std::min(least, (curve_.Seconds(fixed_rows + rows, step.context) - plain) / rows);
  }
  return std::clamp(PlainRate(step) * speed_up_ * (std::max(least, 0.0) + token_seconds), 0.0, 1.0);
}

// `draft_rows` were added to the step.
void Policy::CountRun(const StepOutlook& step, int draft_rows) {
  mean_run_ += kRunForgotten * (kTypicalRun - mean_run_);
  if (draft_rows > 0 && step.fixed_rows() + draft_rows == step.last_rows) {
    ++run_;
    return;
  }
  if (run_ > 0) mean_run_ += kRunShare * (run_ - mean_run_);
  run_ = draft_rows > 0 ? 1 : 0;
}

void Policy::Observe(const StepOutlook& step, int draft_rows, int tokens, double seconds) {
  CountRun(step, draft_rows);
  const double kept = std::exp2(-tokens / kSpeedUpHalfLife);
  tokens_ = tokens_ * kept + tokens;
  plain_tokens_ = plain_tokens_ * kept + PlainRate(step) * seconds;
  if (plain_tokens_ > 0) speed_up_ = std::max(1.0, tokens_ / plain_tokens_);

  credit_ = std::min(credit_ + kTrialShare * tokens, kMostCredit);
  if (!trying_plain_) return;
  const bool surprised = std::abs(curve_.last_ratio() - 1) > kSurprise;
  plain_interval_ = surprised ? kLeastInterval : std::min(2 * plain_interval_, kMostInterval);
  trying_plain_ = false;
}

}  // namespace outrider
