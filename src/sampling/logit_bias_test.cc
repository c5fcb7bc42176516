#include "sampling/logit_bias.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

namespace outrider {
namespace {

std::vector<float> Biased(std::vector<Candidate> all, const std::vector<std::pair<Token, float>>& biases) {
  Candidates candidates{all.data(), all.size(), true};
  MakeLogitBias(biases)->Apply(candidates);
  std::vector<float> logits;
  for (const Candidate& candidate : candidates) logits.push_back(candidate.logit);
  return logits;
}

TEST(LogitBiasTest, AddsAndBans) {
  const float never = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Biased({{0, 1, 0}, {1, 2, 0}, {2, 3, 0}}, {{2, never}, {0, 5}, {0, -1}, {7, 1}}),
            (std::vector<float>{5, 2, never}));
}

TEST(LogitBiasTest, CandidatesInAnotherOrderAreNotTakenForSorted) {
  std::vector<Candidate> all = {{3, 9, 0}, {1, 8, 0}};
  Candidates candidates{all.data(), all.size(), true};
  MakeLogitBias({{1, 5}})->Apply(candidates);
  EXPECT_FALSE(candidates.sorted);
  EXPECT_EQ(all[1].logit, 13);
}

RC_GTEST_PROP(LogitBiasTest, IsTheSumOverAllBiasesInTheirOrder, ()) {
  const auto tokens = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 20));
  const auto given = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange(-1000, 1000)));
  std::vector<Candidate> all;
  for (const int token : tokens) all.push_back({token, 0.1f * static_cast<float>(token), 0});
  std::vector<std::pair<Token, float>> biases;
  for (const auto& [token, bias] : given) biases.emplace_back(token, 0.1f * static_cast<float>(bias));
  std::vector<float> expected;
  for (const Candidate& candidate : all) {
    float logit = candidate.logit;
    for (const auto& [token, bias] : biases) logit = token == candidate.token ? logit + bias : logit;
    expected.push_back(logit);
  }
  RC_ASSERT(Biased(all, biases) == expected);
}

}  // namespace
}  // namespace outrider
