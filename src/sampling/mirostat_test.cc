#include "sampling/mirostat.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sampling/fake_filters.h"
#include "sampling/sampler.h"

namespace outrider {
namespace {

// Candidates with these probabilities, worst first.
std::vector<Candidate> WithProbabilities(std::vector<double> probabilities) {
  std::vector<Candidate> candidates;
  for (size_t i = probabilities.size(); i-- > 0;) {
    candidates.push_back({static_cast<Token>(i), static_cast<float>(std::log(probabilities[i])), 0});
  }
  return candidates;
}

size_t Left(Mirostat& mirostat, std::vector<double> probabilities) {
  auto storage = WithProbabilities(std::move(probabilities));
  Candidates candidates{storage.data(), storage.size(), false};
  mirostat.Apply(candidates);
  return candidates.size;
}

TEST(MirostatTest, LeavesWhatIsNotTooSurprising) {
  const std::vector<double> halves = {0.5, 0.25, 0.125, 0.0625, 0.0625};  // 1, 2, 3, 4 and 4 bits
  Mirostat two(2, 1.25f, 0.1f);                                           // begins with a limit of 2.5 bits
  EXPECT_EQ(Left(two, halves), 2u);
  EXPECT_EQ(Left(two, halves), 2u) << "applying changes nothing";
  Mirostat none(2, 0.1f, 0.1f);
  EXPECT_EQ(Left(none, halves), 1u) << "the best one always stays";
}

TEST(MirostatTest, LearnsFromTheAcceptedToken) {
  const std::vector<double> halves = {0.5, 0.25, 0.125, 0.0625, 0.0625};
  Mirostat mirostat(2, 1.25f, 1.0f);
  ASSERT_EQ(Left(mirostat, halves), 2u);
  mirostat.Accept(0);  // of 2/3 and 1/3: 0.58 bits, 0.67 less than wanted
  EXPECT_EQ(Left(mirostat, halves), 3u) << "the limit is 3.17 bits now";
  mirostat.Accept(4);  // was cut off: nothing to learn
  EXPECT_EQ(Left(mirostat, halves), 3u);
  mirostat.Accept(2);  // of 4/7, 2/7, 1/7: 2.81 bits, 1.56 more than wanted
  EXPECT_EQ(Left(mirostat, halves), 1u) << "the limit is 1.61 bits now";
}

TEST(MirostatTest, VersionOneCutsByTheEstimatedExponent) {
  std::vector<double> zipf;
  for (int rank = 1; rank <= 1000; ++rank) zipf.push_back(std::pow(rank, -1.5));
  Mirostat low(1, 1, 0.1f), high(1, 3, 0.1f);
  // ((0.5 · 2^2) / (1 - 1000^-0.5))^(1 / 1.5) = 1.62, and with 2^6: 10.3.
  EXPECT_EQ(Left(low, zipf), 1u);
  EXPECT_EQ(Left(high, zipf), 10u);
  EXPECT_EQ(Left(high, {1}), 1u);
  EXPECT_EQ(Left(high, {0.25, 0.25, 0.25, 0.25}), 4u) << "no exponent: nothing is cut off";
}

TEST(MirostatTest, TheSamplerUsesItInsteadOfTheOtherFilters) {
  FakeFilterFactory factory;
  SamplingOptions options;
  options.temperature = 1;
  options.top_k = 1;  // not used
  options.mirostat = 2;
  options.mirostat_tau = 5;
  auto sampler = Sampler::Create(options, std::vector<Token>{1, 2}, factory);
  ASSERT_TRUE(sampler.ok());
  const std::vector<float> logits = {0.0f, 0.1f, 0.2f, -200.0f};
  for (Pos position = 0; position < 50; ++position) {
    const Token token = (*sampler)->Draw(logits, position);
    EXPECT_EQ((*sampler)->Draw(logits, position), token);
    EXPECT_EQ((*sampler)->LastCandidates().size(), 3u);
  }
  options.temperature = 0;
  sampler = Sampler::Create(options, {}, factory);
  ASSERT_TRUE(sampler.ok());
  EXPECT_EQ((*sampler)->Draw(logits, 0), 2);
}

}  // namespace
}  // namespace outrider
