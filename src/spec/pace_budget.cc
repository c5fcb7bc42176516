#include "spec/pace_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace outrider {

PaceBudget::PaceBudget(int n_sequences, double min_pace_beside_others, const PaceTuning& tuning)
    : min_pace_beside_others_(min_pace_beside_others), tuning_(tuning), accounts_(static_cast<size_t>(n_sequences)) {}

double PaceBudget::Allowance(int generating) const {
  return 1 / (generating > 1 ? std::max(min_pace_beside_others_, 0.01) : tuning_.min_pace_alone) - 1;
}

void PaceBudget::Begin(SeqId seq) {
  accounts_[static_cast<size_t>(seq)] = tuning_.judged_tokens * Allowance(1);
}

double PaceBudget::Affordable(SeqId seq, int generating) const {
  if (generating > 1 && min_pace_beside_others_ <= 0) return std::numeric_limits<double>::infinity();
  return Allowance(generating) + tuning_.max_stake * std::max(0.0, accounts_[static_cast<size_t>(seq)]);
}

double PaceBudget::Trust() const {
  const double prior = tuning_.trust_prior;
  return std::min(tuning_.max_trust, (accepted_ + tuning_.first_trust * prior) / (expected_ + prior));
}

void PaceBudget::ObserveDrafts(double expected, int accepted) {
  const double kept = std::exp2(-expected / tuning_.trust_half_life);
  expected_ = expected_ * kept + expected;
  accepted_ = accepted_ * kept + accepted;
}

void PaceBudget::Observe(SeqId seq, int generating, int tokens, double plain_steps) {
  double& account = accounts_[static_cast<size_t>(seq)];
  account += tokens - plain_steps + Allowance(generating);
  account = std::clamp(account, -tuning_.max_debt, tuning_.max_savings);
}

}  // namespace outrider
