#include "sampling/gumbel.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace outrider {
namespace {

Candidates View(std::vector<Candidate>& candidates) {
  return {candidates.data(), candidates.size(), false};
}

// Sum over cells of (observed - expected)² / expected.
double ChiSquare(const std::vector<int>& observed, const std::vector<double>& probability, int draws) {
  double sum = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    const double expected = probability[i] * draws;
    sum += (observed[i] - expected) * (observed[i] - expected) / expected;
  }
  return sum;
}

class DrawDistributionTest : public testing::TestWithParam<float> {};

TEST_P(DrawDistributionTest, IsTheSoftmax) {
  const float temperature = GetParam();
  const std::vector<float> logits = {2.0f, 1.5f, 0.0f, -1.0f, -2.5f, 1.0f, 0.3f, -0.7f};
  std::vector<Candidate> candidates;
  std::vector<double> probability;
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates.push_back({static_cast<Token>(i), logits[i], 0});
    probability.push_back(std::exp(logits[i] / temperature));
    sum += probability.back();
  }
  for (double& p : probability) p /= sum;

  constexpr int kDraws = 200'000;
  std::vector<int> observed(logits.size());
  for (int i = 0; i < kDraws; ++i)
    ++observed[static_cast<size_t>(DrawToken(View(candidates), temperature, 42 + i % 7, i))];
  // 99.9 % point of chi-square with 7 degrees of freedom; the seeds are fixed, so the outcome is too.
  EXPECT_LT(ChiSquare(observed, probability, kDraws), 24.32);
}

INSTANTIATE_TEST_SUITE_P(Temperatures, DrawDistributionTest, testing::Values(0.5f, 0.8f, 1.0f, 1.7f));

TEST(DrawTokenTest, TemperatureZeroIsTheBestAndTiesGoToTheLowerId) {
  std::vector<Candidate> candidates = {{5, 1.0f, 0}, {3, 2.0f, 0}, {2, 2.0f, 0}, {9, -1.0f, 0}};
  for (Pos position = 0; position < 50; ++position) EXPECT_EQ(DrawToken(View(candidates), 0, 1, position), 2);
}

TEST(DrawTokenTest, ForbiddenCandidatesAreNeverDrawn) {
  const float forbidden = -std::numeric_limits<float>::infinity();
  std::vector<Candidate> candidates = {{0, forbidden, 0}, {1, -50.0f, 0}, {2, forbidden, 0}};
  for (Pos position = 0; position < 50; ++position) EXPECT_EQ(DrawToken(View(candidates), 1.0f, 1, position), 1);
  candidates.erase(candidates.begin() + 1);
  EXPECT_EQ(DrawToken(View(candidates), 1.0f, 1, 0), kNoToken);
  EXPECT_EQ(DrawToken(View(candidates), 0.0f, 1, 0), kNoToken);
}

TEST(GumbelNoiseTest, IsTheSameForEverAndEverywhere) {
  // Texts made with a seed stay reproducible only while these values stay what they are.
  EXPECT_DOUBLE_EQ(GumbelNoise(1, 0, 0), GumbelNoise(1, 0, 0));
  EXPECT_NE(GumbelNoise(1, 0, 0), GumbelNoise(2, 0, 0));
  EXPECT_NE(GumbelNoise(1, 0, 0), GumbelNoise(1, 1, 0));
  EXPECT_NE(GumbelNoise(1, 0, 0), GumbelNoise(1, 0, 1));
  EXPECT_NE(GumbelNoise(1, 0, 0), GumbelNoise(uint64_t{1} << 32, 0, 0));
}

TEST(GumbelNoiseTest, HasTheMomentsOfAGumbel) {
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double noise = GumbelNoise(7, i, i % 100);
    sum += noise;
    squares += noise * noise;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.5772, 0.01);
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.6449, 0.03);
}

// The short cuts in DrawToken (bounds on the noise) must not show.
RC_GTEST_PROP(DrawTokenTest, EqualsTheDefinition, (uint64_t seed)) {
  const auto logits = *rc::gen::container<std::vector<int>>(200, rc::gen::inRange(-300, 300));
  const auto temperature = static_cast<float>(*rc::gen::inRange(1, 30)) / 10;
  const auto position = *rc::gen::inRange(0, 100'000);
  std::vector<Candidate> candidates;
  Token expected = kNoToken;
  double best = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates.push_back({static_cast<Token>(i), static_cast<float>(logits[i]) / 10, 0});
    const double score =
        candidates.back().logit * (1.0 / temperature) + GumbelNoise(seed, position, static_cast<Token>(i));
    if (score > best) {
      best = score;
      expected = static_cast<Token>(i);
    }
  }
  RC_ASSERT(DrawToken(View(candidates), temperature, seed, position) == expected);
}

RC_GTEST_PROP(DrawTokenTest, DoesNotDependOnOrderOrOnLosers, (uint64_t seed, std::vector<int> logits)) {
  RC_PRE(logits.size() >= 2U);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i)
    candidates.push_back({static_cast<Token>(i * 3), static_cast<float>(logits[i] % 20) / 4, 0});
  const Token drawn = DrawToken(View(candidates), 1.0f, seed, 11);
  std::reverse(candidates.begin(), candidates.end());
  RC_ASSERT(DrawToken(View(candidates), 1.0f, seed, 11) == drawn);
  const auto loser = *rc::gen::inRange<size_t>(0, candidates.size());
  if (candidates[loser].token != drawn) {
    candidates.erase(candidates.begin() + static_cast<ptrdiff_t>(loser));
    RC_ASSERT(DrawToken(View(candidates), 1.0f, seed, 11) == drawn);
  }
}

}  // namespace
}  // namespace outrider
