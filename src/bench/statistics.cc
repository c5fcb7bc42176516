#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace outrider {
namespace {

constexpr int kResamples = 2000;
constexpr size_t kMinGroups = 6;  // with fewer, all lie on one side of the true value in more than 5 of 100 cases
constexpr double kTail95 =
    2.15;  // standard deviations: 1.96, and a tenth more because medians of few values are discrete

double NormalTail(double deviations) {
  return std::erfc(deviations / std::sqrt(2.0)) / 2;
}

// The share of resampled medians to leave out at each end. Resampling few groups understates how much other groups
// would differ, by a factor of sqrt(n / (n - 1)) and by assuming a normal distribution where Student's applies. The
// quantile of the latter comes from Cornish and Fisher's series in 1 / (n - 1).
double TailOf(size_t groups) {
  const double freedom = static_cast<double>(groups - 1);
  const double z = kTail95, z3 = z * z * z, z5 = z3 * z * z;
  const double student = z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom);
  return NormalTail(student * std::sqrt(static_cast<double>(groups) / freedom));
}

}  // namespace

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

Summary Summarise(const std::vector<double>& values) {
  return {values.size(), Quantile(values, 0.5), Quantile(values, 0.1), Quantile(values, 0.9)};
}

Interval MedianInterval(std::span<const double> values, std::span<const int> groups, uint64_t seed) {
  std::map<int, std::vector<double>> by_group;
  for (size_t i = 0; i < values.size(); ++i) {
    by_group[groups.empty() ? static_cast<int>(i) : groups[i]].push_back(values[i]);
  }
  std::vector<const std::vector<double>*> all;
  for (const auto& [group, members] : by_group) all.push_back(&members);
  if (all.size() < kMinGroups)
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  std::mt19937_64 random(seed);
  std::vector<double> medians, sample;
  for (int i = 0; i < kResamples; ++i) {
    sample.clear();
    for (size_t drawn = 0; drawn < all.size(); ++drawn) {
      const std::vector<double>& members = *all[random() % all.size()];
      sample.insert(sample.end(), members.begin(), members.end());
    }
    medians.push_back(Quantile(sample, 0.5));
  }
  const double tail = TailOf(all.size());
  return {Quantile(medians, tail), Quantile(medians, 1 - tail)};
}

void AcceptanceByPosition::Observe(int drafted, int accepted) {
  const auto length = static_cast<size_t>(std::clamp(accepted, 0, std::max(drafted, 0)));
  if (lengths_.size() <= length) lengths_.resize(length + 1);
  ++lengths_[length];
  // All accepted positions and the first rejected one, if any, were observed; what follows a rejection was not.
  const size_t observed = std::min(length + 1, static_cast<size_t>(std::max(drafted, 0)));
  if (observed_.size() < observed) {
    observed_.resize(observed);
    accepted_.resize(observed);
  }
  for (size_t position = 0; position < observed; ++position) {
    ++observed_[position];
    accepted_[position] += position < length ? 1 : 0;
  }
}

void AcceptanceByPosition::Add(const AcceptanceByPosition& other) {
  const auto add = [](std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
    to.resize(std::max(to.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  };
  add(lengths_, other.lengths_);
  add(observed_, other.observed_);
  add(accepted_, other.accepted_);
}

double AcceptanceByPosition::Probability(size_t position) const {
  if (Observations(position) == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(accepted_[position]) / static_cast<double>(observed_[position]);
}

}  // namespace outrider
