#include "spec/pace_budget.h"

#include <algorithm>
#include <limits>

namespace outrider {

PaceBudget::PaceBudget(int n_sequences, double min_pace_beside_others, const PaceTuning& tuning)
    : min_pace_beside_others_(min_pace_beside_others), tuning_(tuning), accounts_(static_cast<size_t>(n_sequences)) {}

double PaceBudget::Allowance(int generating) const {
  return generating > 1 ? 1 / std::max(min_pace_beside_others_, 0.01) - 1 : 0;
}

void PaceBudget::Begin(SeqId seq) {
  Of(seq) = {.savings = tuning_.first_savings, .tokens = 0};
}

double PaceBudget::Affordable(SeqId seq, int generating) const {
  return Allowance(generating) + tuning_.max_stake * std::max(0.0, Savings(seq, generating));
}

double PaceBudget::Savings(SeqId seq, int generating) const {
  if (generating > 1 && min_pace_beside_others_ <= 0) return std::numeric_limits<double>::infinity();
  return Of(seq).savings;
}

double PaceBudget::Patience(SeqId seq) const {
  return std::max(1.0, Of(seq).tokens / tuning_.long_answer);
}

void PaceBudget::Observe(SeqId seq, int generating, int tokens, double plain_steps) {
  Account& account = Of(seq);
  const auto beyond = [&] { return std::max(0.0, account.tokens - tuning_.long_answer); };
  double allowance = Allowance(generating) * tokens - tuning_.long_share * beyond();
  account.tokens += tokens;
  allowance += tuning_.long_share * beyond();
  account.savings = std::min(account.savings + tokens - plain_steps + allowance, tuning_.max_savings);
}

}  // namespace outrider
