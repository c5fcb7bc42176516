#include "spec/predict.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Plain steps and drafted ones, and what they brought.
struct Account {
  double tokens = 0, seconds = 0;
};

// One drafted step: `tokens` came of it, and with chance `wrong` its draft did not hold to its end.
void AddStep(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length, double tokens,
             double wrong, int context, Account* account) {
  const double step = curve.Seconds(1 + length, context), plain = curve.Seconds(1, context);
  account->tokens += tokens;
  account->seconds += step;
  const double drafting = length * costs.token_seconds;
  if (!costs.remote) {
    account->seconds += drafting;
    return;
  }
  // Ahead of time if it was right; else from here on.
  const double late = drafting + costs.round_trip_seconds;
  const double plain_steps = std::floor(late / plain);
  const double attempts = 1 / std::max(1e-6, std::pow(acceptance, plain_steps));
  account->tokens += wrong * plain_steps * attempts;
  account->seconds += wrong * (plain_steps > 0 ? plain_steps * plain : late) * attempts;
  account->seconds += (1 - wrong) * std::max(0.0, drafting - step);
}

double SpeedUp(const CostCurve& curve, const Account& account, int context) {
  return account.seconds > 0 ? account.tokens * curve.Seconds(1, context) / account.seconds : 1;
}

template <typename Predict>
BestLength Best(int most, Predict predict) {
  BestLength best;
  for (int length = 1; length <= most; ++length) {
    const double speed_up = predict(length);
    if (speed_up > best.speed_up) best = {length, speed_up};
  }
  return best;
}

}  // namespace

double ExpectedTokens(double acceptance, int length) {
  if (acceptance >= 1) return length + 1;
  return (1 - std::pow(acceptance, length + 1)) / (1 - acceptance);
}

double PredictedSpeedUp(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length, int context) {
  if (length == 0) return 1;
  Account account;
  AddStep(curve, costs, acceptance, length, ExpectedTokens(acceptance, length), 1 - std::pow(acceptance, length),
          context, &account);
  return SpeedUp(curve, account, context);
}

BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, double acceptance, int most) {
  return Best(most, [&](int length) { return PredictedSpeedUp(curve, costs, acceptance, length); });
}

double LongestRoundTrip(const CostCurve& curve, double token_seconds, double acceptance, double least) {
  const auto pays = [&](double seconds) {
    return FindBestLength(curve, {token_seconds, true, seconds}, acceptance).speed_up >= least;
  };
  if (!pays(0)) return 0;
  constexpr double kMost = 10;
  if (pays(kMost)) return kMost;
  double low = 0, high = kMost;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (pays(middle) ? low : high) = middle;
  }
  return low;
}

double AcceptanceOf(const Outcomes& outcomes) {
  if (outcomes.empty()) return 0;
  return static_cast<double>(std::count(outcomes.begin(), outcomes.end(), true)) / static_cast<double>(outcomes.size());
}

double ReplayedSpeedUp(const CostCurve& curve, const DraftCosts& costs, const Outcomes& outcomes, int length) {
  if (length == 0) return 1;
  const double acceptance = AcceptanceOf(outcomes);
  Account account;
  for (size_t next = 0; next < outcomes.size();) {
    int accepted = 0;
    bool wrong = false;
    for (; accepted < length && next < outcomes.size() && !wrong; ++next) {
      wrong = !outcomes[next];
      accepted += wrong ? 0 : 1;
    }
    AddStep(curve, costs, acceptance, length, accepted + 1, wrong ? 1 : 0, 0, &account);
  }
  return SpeedUp(curve, account, 0);
}

BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, const Outcomes& outcomes, int most) {
  return Best(most, [&](int length) { return ReplayedSpeedUp(curve, costs, outcomes, length); });
}

double ReplayedSpeedUp(const CostCurve& curve, std::span<const TakenStep> steps, int context) {
  Account account;
  for (const TakenStep& step : steps) {
    account.tokens += step.accepted + 1;
    account.seconds += curve.Seconds(1 + step.drafted, context) + step.draft_seconds;
  }
  return SpeedUp(curve, account, context);
}

}  // namespace outrider
