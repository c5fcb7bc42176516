// OddsFilter: learns from yes/no outcomes how likely the next yes is, given a few numbers that describe the case.
//
// The log odds are a linear function of the numbers. Its weights are known with some uncertainty and change slowly (an
// extended Kalman filter for logistic regression). Each case also belongs to a subject, whose log odds may differ from
// those of the others by an advantage, which is learned in the same step.
//
// Answers depend only on the arguments and on earlier calls. A call takes a few dozen multiplications and allocates
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "spec/belief.h"

namespace outrider {

template <size_t N>
class OddsFilter {
 public:
  using Numbers = std::array<double, N>;

  // `at_first`: mean and variance of each weight before the first observation. `wander`: by how much the variance of a
  // weight grows with each observation; it never gets larger than at first.
  OddsFilter(const std::array<Belief, N>& at_first, double wander) : at_first_(at_first), wander_(wander) {
    for (size_t i = 0; i < N; ++i) {
      weights_[i] = at_first[i].mean;
      covariance_[i][i] = at_first[i].variance;
    }
  }

  double Probability(const Numbers& numbers, const Belief& advantage) const {
    double log_odds = advantage.mean;
    for (size_t i = 0; i < N; ++i) log_odds += weights_[i] * numbers[i];
    return 1 / (1 + std::exp(-std::clamp(log_odds, -kMaxLogOdds, kMaxLogOdds)));
  }

  void Observe(const Numbers& numbers, bool yes, Belief* advantage) {
    const double expected = Probability(numbers, *advantage);
    const double information = expected * (1 - expected);
    Numbers spread{};  // covariance of the weights with the log odds
    double variance = advantage->variance;
    for (size_t i = 0; i < N; ++i) {
      for (size_t j = 0; j < N; ++j) spread[i] += covariance_[i][j] * numbers[j];
      variance += spread[i] * numbers[i];
    }
    const double trust = 1 / (1 + information * variance);
    const double surprise = (yes ? 1 : 0) - expected;
    for (size_t i = 0; i < N; ++i) {
      weights_[i] += spread[i] * trust * surprise;
      for (size_t j = 0; j < N; ++j) covariance_[i][j] -= spread[i] * spread[j] * trust * information;
      covariance_[i][i] = std::min(covariance_[i][i] + wander_, at_first_[i].variance);
    }
    advantage->mean += advantage->variance * trust * surprise;
    advantage->variance -= advantage->variance * advantage->variance * trust * information;
  }

 private:
  static constexpr double kMaxLogOdds = 9;

  std::array<Belief, N> at_first_;
  double wander_;
  Numbers weights_{};
  std::array<Numbers, N> covariance_{};
};

}  // namespace outrider
