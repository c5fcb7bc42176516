// OddsFilter: learns from yes and no how likely the next yes is, given a few numbers that may tell.
//
// The log odds are taken to be linear in the numbers, with weights that are known with some uncertainty and wander
// slowly (an extended Kalman filter for logistic regression). Each case also belongs to a subject, whose own log odds
// may differ from the rest by an advantage, learned in the same step.
//
// Pure; a few dozen multiplications per call; no allocation.
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

  // What is believed of each weight before anything is seen; `wander` is what a weight's variance grows by from one
  // observation to the next, never beyond what it was at first.
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
