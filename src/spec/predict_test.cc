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
  EXPECT_LT(PredictedSpeedUp(kFlat, {0.020}, 0.3, 4), 1) << "an expensive draft that is mostly wrong";
  EXPECT_EQ(FindBestLength(kFlat, {0.020}, 0.3).length, 0);
  const BestLength best = FindBestLength(kFlat, {0.001}, 0.8);
  for (int length = 1; length <= 32; ++length) {
    EXPECT_LE(PredictedSpeedUp(kFlat, {0.001}, 0.8, length), best.speed_up);
  }
  EXPECT_GT(best.length, FindBestLength(kFlat, {0.004}, 0.8).length) << "more expensive drafts are shorter";
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

// Drafts of `length` tokens, each right with the same chance.
std::vector<TakenStep> Independent(double acceptance, int length, int count) {
  std::mt19937 random(1);
  std::vector<TakenStep> steps;
  for (int i = 0; i < count; ++i) {
    int accepted = 0;
    while (accepted < length && std::bernoulli_distribution(acceptance)(random)) ++accepted;
    steps.push_back({length, accepted, 0});
  }
  return steps;
}

TEST(PredictTest, AReplayOfIndependentDraftsIsTheClosedForm) {
  for (const int length : {1, 3, 8}) {
    const std::vector<TakenStep> steps = Independent(0.7, length, 100'000);
    EXPECT_NEAR(AcceptanceOf(steps), 0.7, 0.005);
    EXPECT_NEAR(ReplayedSpeedUp(kFlat, {0.001}, steps, length), PredictedSpeedUp(kFlat, {0.001}, 0.7, length), 0.01)
        << length;
  }
}

TEST(PredictTest, AReplayKeepsRunsAndGaps) {
  // All right or all wrong: the closed form for the same share promises more.
  std::vector<TakenStep> runs;
  for (int i = 0; i < 1000; ++i) runs.push_back({4, i % 4 == 0 ? 0 : 4, 0});
  const double share = AcceptanceOf(runs);
  EXPECT_NEAR(share, 12.0 / 13, 1e-9);
  EXPECT_LT(ReplayedSpeedUp(kFlat, {0.001}, runs, 4), 0.95 * PredictedSpeedUp(kFlat, {0.001}, share, 4));
  // A drafter that has something to say in one step of ten.
  std::vector<TakenStep> rare(1000);
  for (size_t i = 0; i < rare.size(); i += 10) rare[i] = {4, 4, 0};
  EXPECT_NEAR(ReplayedSpeedUp(kFlat, {0.001}, rare, 4),
              14 * kFlat.Seconds(1, 0) / (9 * kFlat.Seconds(1, 0) + kFlat.Seconds(5, 0) + 0.004), 1e-9);
  EXPECT_LT(FindBestLength(kFlat, {0.001}, rare).speed_up, 1.5);
}

TEST(PredictTest, ADraftThatIsCutGoesOnInTheNextStep) {
  // Nine right in steps of four: four and one, then four more of which nothing is known past the ninth.
  const std::vector<TakenStep> steps = {{9, 9, 0}};
  const double seconds = kFlat.Seconds(5, 0) + kFlat.Seconds(5, 0);
  EXPECT_NEAR(ReplayedSpeedUp(kFlat, {0}, steps, 4), 10 * kFlat.Seconds(1, 0) / seconds, 1e-9);
  EXPECT_NEAR(ReplayedSpeedUp(kFlat, {0}, steps, 9), 10 * kFlat.Seconds(1, 0) / kFlat.Seconds(10, 0), 1e-9);
}

TEST(PredictTest, StepsAsTheyWereTaken) {
  const std::vector<TakenStep> steps = {{4, 4, 0.001}, {0, 0, 0}, {2, 1, 0.002}};
  const double seconds = kFlat.Seconds(5, 0) + 0.001 + kFlat.Seconds(1, 0) + kFlat.Seconds(3, 0) + 0.002;
  EXPECT_NEAR(ReplayedSpeedUp(kFlat, steps), 8 * kFlat.Seconds(1, 0) / seconds, 1e-12);
  EXPECT_EQ(ReplayedSpeedUp(kFlat, std::vector<TakenStep>()), 1);
  EXPECT_EQ(AcceptanceOf(std::vector<TakenStep>()), 0);
}

}  // namespace
}  // namespace outrider
