#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace outrider {
namespace {

constexpr int kResamples = 2000;
constexpr size_t kFewestGroups = 6;  // with fewer, all of them lie on one side of the truth in more than 5 of 100 cases
constexpr double kTail95 = 2.15;     // standard deviations: 1.96, and a tenth more since medians of few values jump

double NormalTail(double deviations) {
  return std::erfc(deviations / std::sqrt(2.0)) / 2;
}

// Which share of resampled medians to leave out at each end. Resampling few groups understates how much other groups
// would differ: by a factor of sqrt(n / (n - 1)), and by taking a normal distribution for Student's, whose tail is
// Cornish and Fisher's series in 1 / (n - 1).
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
  if (all.size() < kFewestGroups)
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

void AcceptanceByPlace::Observe(int drafted, int accepted) {
  const auto length = static_cast<size_t>(std::clamp(accepted, 0, std::max(drafted, 0)));
  if (lengths_.size() <= length) lengths_.resize(length + 1);
  ++lengths_[length];
  const size_t asked = std::min(length + 1, static_cast<size_t>(std::max(drafted, 0)));
  if (asked_.size() < asked) {
    asked_.resize(asked);
    right_.resize(asked);
  }
  for (size_t place = 0; place < asked; ++place) {
    ++asked_[place];
    right_[place] += place < length ? 1 : 0;
  }
}

void AcceptanceByPlace::Add(const AcceptanceByPlace& other) {
  const auto add = [](std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
    to.resize(std::max(to.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  };
  add(lengths_, other.lengths_);
  add(asked_, other.asked_);
  add(right_, other.right_);
}

double AcceptanceByPlace::Chance(size_t place) const {
  if (Asked(place) == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(right_[place]) / static_cast<double>(asked_[place]);
}

}  // namespace outrider
