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

// Trials of plain steps while drafts pay: the more often, the further off the last one was.
constexpr double kSurprise = 0.3;
constexpr int kLeastInterval = 8;  // steps
constexpr int kMostInterval = 256;

}  // namespace

double Policy::Rate(int generating, int context) const {
  return generating * speed_up_ / curve_.Seconds(generating, context);
}

// A token gained now saves the time it would have taken later. How soon the tokens that follow come is between what was
// usual lately and what the best of these options promises.
double Policy::RateWith(int generating, int context, double draft_seconds) const {
  double here = 0;
  for (const Option& option : options_)
    here = std::max(here, (generating + option.tokens) / (option.seconds + draft_seconds));
  const double lately = Rate(generating, context);
  return std::max(std::sqrt(lately * here), generating / curve_.Seconds(generating, context));
}

// The rows a step has anyway: one of each generating sequence, and those of a prompt.
void Policy::BeginStep(int fixed_rows, int generating) {
  const int prompt_rows = fixed_rows - generating;
  sequences_at_.assign(static_cast<size_t>(std::max(prompt_rows, 1)), prompt_rows > 0 ? 1 : 0);
  sequences_at_[0] += generating;
}

// `sequences` more of the sequences have more than `place` + 1 rows.
void Policy::AddRows(size_t place, int sequences) {
  if (sequences_at_.size() <= place + 1) sequences_at_.resize(place + 2);
  sequences_at_[place + 1] += sequences;
}

// options_[n] = the n best rows; order_[n] = which draft has the next row after that. With several drafts also each
// common length, since sequences of unequal width are computed in parts.
void Policy::ListOptions(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows) {
  const auto less = [](const Next& a, const Next& b) { return a.survival < b.survival; };
  next_.clear();
  order_.clear();
  BeginStep(fixed_rows, generating);
  options_.assign(1, {0, curve_.StepSeconds(sequences_at_, context)});
  for (size_t draft = 0; draft < drafts.size(); ++draft) {
    if (!drafts[draft].empty()) next_.push_back({drafts[draft][0], draft, 0});
  }
  std::make_heap(next_.begin(), next_.end(), less);
  for (int rows = 1; rows <= most_rows && !next_.empty(); ++rows) {
    std::pop_heap(next_.begin(), next_.end(), less);
    Next& next = next_.back();
    AddRows(next.place, 1);
    options_.push_back({options_.back().tokens + next.survival, curve_.StepSeconds(sequences_at_, context)});
    order_.push_back(next.draft);
    if (++next.place < drafts[next.draft].size()) {
      next.survival = drafts[next.draft][next.place];
      std::push_heap(next_.begin(), next_.end(), less);
    } else {
      next_.pop_back();
    }
  }
  levels_begin_ = options_.size();
  if (drafts.size() > 1) ListLevels(drafts, fixed_rows, generating, context, most_rows);
}

// options_[levels_begin_ + n] = the first n + 1 tokens of every draft.
void Policy::ListLevels(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows) {
  BeginStep(fixed_rows, generating);
  double tokens = 0;
  int rows = 0;
  for (size_t place = 0;; ++place) {
    int longer = 0;
    for (const Survival& draft : drafts) {
      if (place >= draft.size()) continue;
      tokens += draft[place];
      ++longer;
    }
    rows += longer;
    if (longer == 0 || rows > most_rows) return;
    AddRows(place, longer);
    options_.push_back({tokens, curve_.StepSeconds(sequences_at_, context)});
  }
}

double Policy::GainOf(size_t option, double rate) const {
  return options_[option].tokens - rate * (options_[option].seconds - options_[0].seconds);
}

size_t Policy::BestOption(double rate) const {
  size_t best = 0;
  for (size_t option = 1; option < options_.size(); ++option) {
    if (GainOf(option, rate) > GainOf(best, rate)) best = option;
  }
  return best;
}

// The curve may be wrong about rows that it has not seen for long. Those that might pay after all are tried, as far as
// there is credit for what that is expected to cost.
size_t Policy::OrTrial(size_t best, double rate, int fixed_rows, int context) {
  const double gain = GainOf(best, rate);
  size_t trial = best;
  double most = gain;
  for (size_t option = 1; option < options_.size(); ++option) {
    const double uncertainty =
        curve_.Uncertainty(fixed_rows + static_cast<int>(option), fixed_rows + static_cast<int>(best), context);
    const double loss = gain - GainOf(option, rate);
    const double hope = gain - loss + kOptimism * uncertainty * rate * options_[option].seconds;
    if (hope <= most || loss > credit_ || hope - gain < kUpside * loss) continue;
    most = hope;
    trial = option;
  }
  credit_ -= gain - GainOf(trial, rate);
  return trial;
}

void Policy::ChooseRows(std::span<const Survival> drafts, int fixed_rows, int generating, int context, int most_rows,
                        std::span<int> rows) {
  std::fill(rows.begin(), rows.end(), 0);
  ListOptions(drafts, fixed_rows, generating, context, most_rows);
  const double rate = RateWith(generating, context, 0);
  size_t chosen = BestOption(rate);
  trying_plain_ = false;
  if (fixed_rows == generating) {  // steps with prompts in them teach nothing
    if (drafts.size() == 1) chosen = OrTrial(chosen, rate, fixed_rows, context);
    trying_plain_ = chosen > 0 && ++steps_since_plain_ >= plain_interval_;
    if (chosen == 0 || trying_plain_) steps_since_plain_ = 0;
  }
  if (trying_plain_) return;
  if (chosen < levels_begin_) {
    for (size_t i = 0; i < chosen; ++i) ++rows[order_[i]];
  } else {
    const size_t length = chosen - levels_begin_ + 1;
    for (size_t i = 0; i < drafts.size(); ++i) rows[i] = static_cast<int>(std::min(length, drafts[i].size()));
  }
}

int Policy::ChooseRounds(std::span<const Survival> expected, int fixed_rows, int generating, int context,
                         double round_seconds) {
  BeginStep(fixed_rows, generating);
  options_.assign(1, {0, curve_.StepSeconds(sequences_at_, context)});
  for (size_t round = 0;; ++round) {
    double tokens = 0;
    int drafting = 0;
    for (const Survival& draft : expected) {
      if (round >= draft.size()) continue;
      tokens += draft[round];
      ++drafting;
    }
    if (drafting == 0) break;
    AddRows(round, drafting);
    const double drafted_seconds = static_cast<double>(round + 1) * round_seconds;
    options_.push_back({options_.back().tokens + tokens, curve_.StepSeconds(sequences_at_, context) + drafted_seconds});
  }
  return static_cast<int>(BestOption(RateWith(generating, context, 0)));
}

double Policy::Gain(std::span<const Survival> drafts, int fixed_rows, int generating, int context,
                    double draft_seconds) {
  size_t most_rows = 0;
  for (const Survival& draft : drafts) most_rows += draft.size();
  ListOptions(drafts, fixed_rows, generating, context, static_cast<int>(most_rows));
  const double rate = RateWith(generating, context, draft_seconds);
  return GainOf(BestOption(rate), rate) - rate * draft_seconds;
}

double Policy::LeastSurvival(int fixed_rows, int generating, int context, double token_seconds) const {
  constexpr int kMostAhead = 16;
  const double plain = curve_.Seconds(fixed_rows, context);
  double least = curve_.Seconds(fixed_rows + 1, context) - plain;
  for (int rows = 2; rows <= kMostAhead; ++rows) {
    least = std::min(least, (curve_.Seconds(fixed_rows + rows, context) - plain) / rows);
  }
  return std::clamp(Rate(generating, context) * (std::max(least, 0.0) + token_seconds), 0.0, 1.0);
}

void Policy::Observe(int fixed_rows, int generating, int context, int tokens, double seconds) {
  const double kept = std::exp2(-tokens / kSpeedUpHalfLife);
  tokens_ = tokens_ * kept + tokens;
  plain_tokens_ = plain_tokens_ * kept + generating * seconds / curve_.Seconds(fixed_rows, context);
  if (plain_tokens_ > 0) speed_up_ = std::max(1.0, tokens_ / plain_tokens_);

  credit_ = std::min(credit_ + kTrialShare * tokens, kMostCredit);
  if (!trying_plain_) return;
  const bool surprised = std::abs(curve_.last_ratio() - 1) > kSurprise;
  plain_interval_ = surprised ? kLeastInterval : std::min(2 * plain_interval_, kMostInterval);
  trying_plain_ = false;
}

}  // namespace outrider
