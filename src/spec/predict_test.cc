#include "spec/predict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace outrider {
namespace {

const CostCurve kFlat({{1, 0.020}, {2, 0.021}, {8, 0.024}, {32, 0.060}});

TEST(PredictTest, ExpectedTokensAreTheGeometricSum) {
  EXPECT_DOUBLE_EQ(ExpectedTokens(0, 5), 1);
  EXPECT_DOUBLE_EQ(ExpectedTokens(1, 5), 6);
  EXPECT_NEAR(ExpectedTokens(0.5, 3), 1 + 0.5 + 0.25 + 0.125, 1e-12);
}

TEST(PredictTest, LocalDraftsPayForThemselves) {
  // By hand: four tokens at 2 ms each beside a step of five rows.
  const double step = kFlat.Seconds(5, 0) + 4 * 0.002;
  EXPECT_NEAR(PredictedSpeedUp(kFlat, {0.002}, 0.8, 4), ExpectedTokens(0.8, 4) * kFlat.Seconds(1, 0) / step, 1e-12);
  EXPECT_EQ(PredictedSpeedUp(kFlat, {0.002}, 0.8, 0), 1);
  EXPECT_LT(PredictedSpeedUp(kFlat, {0.020}, 0.3, 4), 1) << "a dear draft that is mostly wrong";
  EXPECT_EQ(FindBestLength(kFlat, {0.020}, 0.3).length, 0);
  const BestLength best = FindBestLength(kFlat, {0.001}, 0.8);
  for (int length = 1; length <= 32; ++length) {
    EXPECT_LE(PredictedSpeedUp(kFlat, {0.001}, 0.8, length), best.speed_up);
  }
  EXPECT_GT(best.length, FindBestLength(kFlat, {0.004}, 0.8).length) << "dearer drafts are shorter";
}

TEST(PredictTest, ARemoteDraftIsFreeWhileItIsRight) {
  const DraftCosts near = {0.002, true, 0}, far = {0.002, true, 0.050};
  EXPECT_NEAR(PredictedSpeedUp(kFlat, far, 1, 4), 5 * kFlat.Seconds(1, 0) / kFlat.Seconds(5, 0), 1e-12);
  EXPECT_GT(PredictedSpeedUp(kFlat, near, 0.7, 4), PredictedSpeedUp(kFlat, far, 0.7, 4));
  EXPECT_GE(PredictedSpeedUp(kFlat, {0.002, true, 5}, 0.7, 4), 0.99) << "plain steps go on meanwhile";
  const double longest = LongestRoundTrip(kFlat, 0.002, 0.7);
  EXPECT_GT(longest, 0.02);
  EXPECT_LT(FindBestLength(kFlat, {0.002, true, longest * 1.05}, 0.7).speed_up, 1.021);
  EXPECT_GT(FindBestLength(kFlat, {0.002, true, longest * 0.95}, 0.7).speed_up, 1.019);
  EXPECT_EQ(LongestRoundTrip(kFlat, 0.002, 0.001), 0);
}

// Without runs a replay is the closed form; with runs of the same share it promises less.
TEST(PredictTest, ReplaysKeepRuns) {
  std::mt19937 random(1);
  Outcomes independent;
  for (int i = 0; i < 200'000; ++i) independent.push_back(std::bernoulli_distribution(0.7)(random));
  for (const int length : {1, 3, 8}) {
    EXPECT_NEAR(ReplayedSpeedUp(kFlat, {0.001}, independent, length), PredictedSpeedUp(kFlat, {0.001}, 0.7, length),
                0.01)
        << length;
  }
  // All right for a while, then all wrong: a share of 0.7, but every second draft is in vain.
  Outcomes runs;
  for (int i = 0; i < 2000; ++i) {
    for (int j = 0; j < 14; ++j) runs.push_back(true);
    for (int j = 0; j < 6; ++j) runs.push_back(false);
  }
  EXPECT_NEAR(AcceptanceOf(runs), 0.7, 1e-12);
  EXPECT_LT(ReplayedSpeedUp(kFlat, {0.001}, runs, 4), 0.95 * PredictedSpeedUp(kFlat, {0.001}, 0.7, 4));
}

TEST(PredictTest, StepsAsTheyWereTaken) {
  const std::vector<TakenStep> steps = {{4, 4, 0.001}, {0, 0, 0}, {2, 1, 0.002}};
  const double seconds = kFlat.Seconds(5, 0) + 0.001 + kFlat.Seconds(1, 0) + kFlat.Seconds(3, 0) + 0.002;
  EXPECT_NEAR(ReplayedSpeedUp(kFlat, steps, 0), 8 * kFlat.Seconds(1, 0) / seconds, 1e-12);
  EXPECT_EQ(ReplayedSpeedUp(kFlat, std::vector<TakenStep>(), 0), 1);
}

}  // namespace
}  // namespace outrider
