#include "bench/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

namespace outrider {
namespace {

TEST(StatisticsTest, Quantiles) {
  EXPECT_TRUE(std::isnan(Quantile({}, 0.5)));
  EXPECT_EQ(Quantile({7}, 0.9), 7);
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({4, 1, 2, 3}, 0.5), 2.5);
  EXPECT_EQ(Quantile({1, 2, 3, 4, 5}, 0), 1);
  EXPECT_EQ(Quantile({1, 2, 3, 4, 5}, 1), 5);
  EXPECT_NEAR(Quantile({0, 10}, 0.1), 1, 1e-12);
}

RC_GTEST_PROP(StatisticsTest, QuantilesAreInOrderAndWithinTheValues, (std::vector<double> values)) {
  RC_PRE(!values.empty());
  for (double& value : values) value = std::isfinite(value) ? std::fmod(value, 1e6) : 0;
  double last = Quantile(values, 0);
  for (const double share : {0.1, 0.25, 0.5, 0.9, 1.0}) {
    const double next = Quantile(values, share);
    RC_ASSERT(next >= last);
    last = next;
  }
  const Interval interval = MedianInterval(values, {});
  if (values.size() < 6) {
    RC_ASSERT(std::isnan(interval.low) && std::isnan(interval.high));
    return;
  }
  RC_ASSERT(interval.low <= interval.high);
  RC_ASSERT(interval.low >= Quantile(values, 0) && interval.high <= Quantile(values, 1));
}

// Of 200 benches with a known median, about 95 in 100 intervals hold it.
TEST(StatisticsTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const double spread : {0.02, 0.2}) {
    int held = 0;
    constexpr int kBenches = 200;
    for (unsigned bench = 0; bench < kBenches; ++bench) {
      std::mt19937 random(bench);
      std::vector<double> ratios;
      for (int i = 0; i < 40; ++i) ratios.push_back(std::lognormal_distribution<double>(std::log(1.7), spread)(random));
      held += MedianInterval(ratios, {}, bench + 1).Contains(1.7) ? 1 : 0;
    }
    EXPECT_GE(held, kBenches * 0.90) << spread;
    EXPECT_LE(held, kBenches * 0.99) << spread;
  }
}

// Ten runs of each of six prompts are not sixty prompts.
TEST(StatisticsTest, RunsOfOnePromptAreOneObservation) {
  int held = 0, held_without_groups = 0;
  constexpr int kBenches = 100;
  for (unsigned bench = 0; bench < kBenches; ++bench) {
    std::mt19937 random(bench);
    std::vector<double> ratios;
    std::vector<int> groups;
    for (int prompt = 0; prompt < 9; ++prompt) {
      const double of_prompt = std::lognormal_distribution<double>(std::log(1.7), 0.3)(random);
      for (int run = 0; run < 10; ++run) {
        ratios.push_back(of_prompt * std::lognormal_distribution<double>(0, 0.02)(random));
        groups.push_back(prompt);
      }
    }
    held += MedianInterval(ratios, groups, bench + 1).Contains(1.7) ? 1 : 0;
    held_without_groups += MedianInterval(ratios, {}, bench + 1).Contains(1.7) ? 1 : 0;
  }
  EXPECT_GE(held, 92);
  EXPECT_LE(held_without_groups, 70);
}

TEST(StatisticsTest, AcceptanceByPositionIsConditional) {
  AcceptanceByPosition acceptance;
  for (int i = 0; i < 10; ++i) acceptance.Observe(4, 4);
  for (int i = 0; i < 10; ++i) acceptance.Observe(4, 1);
  for (int i = 0; i < 20; ++i) acceptance.Observe(2, 0);
  EXPECT_DOUBLE_EQ(acceptance.Probability(0), 0.5);
  EXPECT_DOUBLE_EQ(acceptance.Probability(1), 0.5);
  EXPECT_DOUBLE_EQ(acceptance.Probability(2), 1);
  EXPECT_TRUE(std::isnan(acceptance.Probability(4)));
  EXPECT_EQ(acceptance.Observations(1), 20u);
  EXPECT_EQ(acceptance.lengths(), (std::vector<uint64_t>{20, 10, 0, 0, 10}));
}

}  // namespace
}  // namespace outrider
