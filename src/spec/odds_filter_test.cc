#include "spec/odds_filter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace outrider {
namespace {

// Cases with two numbers, drawn by known odds, from subjects that differ.
struct World {
  std::mt19937 random{1};
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random); }
  double Normal() { return std::normal_distribution<double>(0, 1)(random); }
  bool Draw(double log_odds) { return Uniform() < 1 / (1 + std::exp(-log_odds)); }
};

double LogOdds(double p) {
  return std::log(p / (1 - p));
}

TEST(OddsFilterTest, FindsTheWeights) {
  World world;
  OddsFilter<3> filter({{{0, 1}, {0, 1}, {0, 1}}}, 0);
  Belief nobody;
  for (int i = 0; i < 20000; ++i) {
    const std::array<double, 3> numbers = {1, world.Normal(), world.Uniform()};
    filter.Observe(numbers, world.Draw(-0.5 + 0.8 * numbers[1] + 1.5 * numbers[2]), &nobody);
  }
  const auto at = [&](double x, double y) { return LogOdds(filter.Probability({1, x, y}, nobody)); };
  EXPECT_NEAR(at(0, 0), -0.5, 0.12);
  EXPECT_NEAR(at(1, 0) - at(0, 0), 0.8, 0.12);
  EXPECT_NEAR(at(0, 1) - at(0, 0), 1.5, 0.2);
  EXPECT_EQ(nobody.mean, 0) << "without variance an advantage is not learned";
}

TEST(OddsFilterTest, SubjectsHaveTheirOwnOdds) {
  World world;
  OddsFilter<1> filter({{{0, 1}}}, 0);
  Belief good = {0, 1}, bad = {0, 1};
  for (int i = 0; i < 2000; ++i) {
    filter.Observe({1}, world.Draw(1.5), &good);
    filter.Observe({1}, world.Draw(-1.5), &bad);
  }
  EXPECT_NEAR(LogOdds(filter.Probability({1}, good)), 1.5, 0.25);
  EXPECT_NEAR(LogOdds(filter.Probability({1}, bad)), -1.5, 0.25);
  EXPECT_NEAR(LogOdds(filter.Probability({1}, {0, 1})), 0, 0.4);
  EXPECT_LT(good.variance, 0.6);
}

TEST(OddsFilterTest, AWeightThatWandersIsFollowed) {
  World world;
  OddsFilter<1> still({{{0, 1}}}, 0), follows({{{0, 1}}}, 1e-3);
  Belief nobody;
  for (int i = 0; i < 6000; ++i) {
    const bool yes = world.Draw(i < 4000 ? 2 : -2);
    still.Observe({1}, yes, &nobody);
    follows.Observe({1}, yes, &nobody);
  }
  EXPECT_NEAR(LogOdds(follows.Probability({1}, nobody)), -2, 0.7);
  EXPECT_GT(LogOdds(still.Probability({1}, nobody)), 0);
}

TEST(OddsFilterTest, NothingSeenOverflows) {
  OddsFilter<2> filter({{{0, 1}, {0, 1}}}, 1e-3);
  Belief advantage = {0, 1};
  for (int i = 0; i < 100000; ++i) filter.Observe({1, 50}, true, &advantage);
  const double p = filter.Probability({1, 50}, advantage);
  EXPECT_GT(p, 0.99);
  EXPECT_LT(p, 1);
}

}  // namespace
}  // namespace outrider
