#include "spec/predict.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Plain steps and drafted ones, and what they brought.
struct Account {
  double tokens = 0, seconds = 0;
};

// Adds a step with a draft: it generates `tokens` tokens, and with chance `wrong` its draft is not accepted completely.
void AddStep(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length, double tokens,
             double wrong, Account* account) {
  const double step = curve.Seconds(1 + length, 0), plain = curve.Seconds(1, 0);
  account->tokens += tokens;
  account->seconds += step;
  const double drafting = length * costs.token_seconds;
  if (!costs.remote) {
    account->seconds += drafting;
    return;
  }
  // If the draft was right, the server has made the next one ahead of time; else it begins with it now.
  const double late = drafting + costs.round_trip_seconds;
  const double plain_steps = std::floor(late / plain);
  const double attempts = 1 / std::max(1e-6, std::pow(acceptance, plain_steps));
  account->tokens += wrong * plain_steps * attempts;
  account->seconds += wrong * (plain_steps > 0 ? plain_steps * plain : late) * attempts;
  account->seconds += (1 - wrong) * std::max(0.0, drafting - step);
}

double SpeedUp(const CostCurve& curve, const Account& account) {
  return account.seconds > 0 ? account.tokens * curve.Seconds(1, 0) / account.seconds : 1;
}

template <typename Predict>
BestLength Best(int max_length, Predict predict) {
  BestLength best;
  for (int length = 1; length <= max_length; ++length) {
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

double PredictedSpeedUp(const CostCurve& curve, const DraftCosts& costs, double acceptance, int length) {
  if (length == 0) return 1;
  Account account;
  AddStep(curve, costs, acceptance, length, ExpectedTokens(acceptance, length), 1 - std::pow(acceptance, length),
          &account);
  return SpeedUp(curve, account);
}

BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, double acceptance, int max_length) {
  return Best(max_length, [&](int length) { return PredictedSpeedUp(curve, costs, acceptance, length); });
}

double LongestRoundTrip(const CostCurve& curve, double token_seconds, double acceptance, double min_speed_up) {
  const auto pays = [&](double seconds) {
    return FindBestLength(curve, {token_seconds, true, seconds}, acceptance).speed_up >= min_speed_up;
  };
  if (!pays(0)) return 0;
  constexpr double kMaxSeconds = 10;
  if (pays(kMaxSeconds)) return kMaxSeconds;
  double low = 0, high = kMaxSeconds;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (pays(middle) ? low : high) = middle;
  }
  return low;
}

double AcceptanceOf(std::span<const TakenStep> steps) {
  double right = 0, asked = 0;
  for (const TakenStep& step : steps) {
    right += step.accepted;
    asked += step.accepted + (step.accepted < step.drafted ? 1 : 0);
  }
  return asked > 0 ? right / asked : 0;
}

double ReplayedSpeedUp(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps, int length) {
  if (length == 0) return 1;
  const double acceptance = AcceptanceOf(steps);
  Account account;
  for (const TakenStep& step : steps) {
    if (step.drafted == 0) {
      account.tokens += 1;
      account.seconds += curve.Seconds(1, 0);
      continue;
    }
    // After a draft that was cut, the rest of it is verified in further steps, without the token that the target
    // generated.
    int drafted = step.drafted, accepted = step.accepted;
    while (drafted > 0) {
      const int cut = std::min(drafted, length), right = std::min(accepted, cut);
      AddStep(curve, costs, acceptance, cut, right + 1, right < cut ? 1 : 0, &account);
      if (right < cut) break;
      drafted -= cut + 1;
      accepted -= std::min(accepted, cut + 1);
    }
  }
  return SpeedUp(curve, account);
}

BestLength FindBestLength(const CostCurve& curve, const DraftCosts& costs, std::span<const TakenStep> steps,
                          int max_length) {
  return Best(max_length, [&](int length) { return ReplayedSpeedUp(curve, costs, steps, length); });
}

double ReplayedSpeedUp(const CostCurve& curve, std::span<const TakenStep> steps) {
  Account account;
  for (const TakenStep& step : steps) {
    account.tokens += step.accepted + 1;
    account.seconds += curve.Seconds(1 + step.drafted, 0) + step.draft_seconds;
  }
  return SpeedUp(curve, account);
}

}  // namespace outrider
