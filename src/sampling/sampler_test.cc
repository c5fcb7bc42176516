#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sampling/fake_filters.h"
#include "sampling/gumbel.h"
#include "sampling/logprobs.h"

namespace outrider {
namespace {

SamplingOptions Plain(float temperature, uint64_t seed = 5) {
  SamplingOptions options;
  options.temperature = temperature;
  options.seed = seed;
  options.top_k = 0;
  options.top_p = 1;
  options.min_p = 0;
  return options;
}

std::unique_ptr<Sampler> Make(const SamplingOptions& options) {
  FakeFilterFactory factory;
  auto sampler = Sampler::Create(options, {}, factory);
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  return std::move(*sampler);
}

const std::vector<float> kLogits = {0.0f, 3.0f, 1.0f, 2.0f, -1.0f};

TEST(SamplerTest, GreedyTakesTheBest) {
  EXPECT_EQ(Make(Plain(0))->Draw(kLogits, 9), 1);
}

TEST(SamplerTest, DrawingTwiceGivesTheSame) {
  auto sampler = Make(Plain(1.5f));
  for (Pos position = 0; position < 100; ++position) {
    const Token first = sampler->Draw(kLogits, position);
    EXPECT_EQ(sampler->Draw(kLogits, position), first);
  }
}

TEST(SamplerTest, BiasDecidesGreedyToo) {
  SamplingOptions options = Plain(0);
  options.logit_bias = {{4, 100.0f}};
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), 4);
  options.logit_bias = {{1, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), 3);
}

TEST(SamplerTest, TopKOfOneIsGreedy) {
  SamplingOptions options = Plain(2.0f);
  options.top_k = 1;
  auto sampler = Make(options);
  for (Pos position = 0; position < 100; ++position) EXPECT_EQ(sampler->Draw(kLogits, position), 1);
}

TEST(SamplerTest, StagesApplyInTheirOrderAndOthersAreLeftOut) {
  SamplingOptions options = Plain(2.0f);
  options.top_k = 1;
  options.stages = {SamplingStage::kTemperature};
  auto without_top_k = Make(options);
  options.stages = {};
  options.temperature = 0;
  auto without_temperature = Make(options);
  EXPECT_FALSE(without_temperature->greedy()) << "nothing makes it so";
  options.temperature = 2.0f;
  options.top_k = 3;
  options.stages = {SamplingStage::kTemperature, SamplingStage::kTopK};
  auto temperature_first = Make(options);
  options.stages = {SamplingStage::kTopK, SamplingStage::kTemperature};
  auto temperature_last = Make(options);
  std::set<Token> from_all, at_one;
  for (Pos position = 0; position < 300; ++position) {
    from_all.insert(without_top_k->Draw(kLogits, position));
    at_one.insert(without_temperature->Draw(kLogits, position));
    EXPECT_EQ(temperature_first->Draw(kLogits, position), temperature_last->Draw(kLogits, position));
    EXPECT_NEAR(temperature_first->LastProbability(1), temperature_last->LastProbability(1), 1e-6);
  }
  EXPECT_GT(from_all.size(), 3u);
  EXPECT_GT(at_one.size(), 1u);
}

TEST(SamplerTest, StagesHaveNames) {
  for (const SamplingStage stage : kDefaultSamplingStages) EXPECT_EQ(SamplingStageFromName(NameOf(stage)), stage);
  EXPECT_EQ(SamplingStageFromName("Top-K"), SamplingStage::kTopK);
  EXPECT_EQ(SamplingStageFromName("nucleus"), SamplingStage::kTopP);
  EXPECT_EQ(SamplingStageFromLetter('e'), SamplingStage::kPenalties);
  EXPECT_FALSE(SamplingStageFromName("infill"));
  EXPECT_FALSE(SamplingStageFromLetter('i'));
}

TEST(SamplerTest, GrammarConstrainsWhatIsDrawn) {
  SamplingOptions options = Plain(0);
  options.grammar.text = std::string("\x02\x04", 2);  // tokens 2 and 4
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), 2);
  options.temperature = 3;
  auto sampler = Make(options);
  for (Pos position = 0; position < 200; ++position) {
    const Token token = sampler->Draw(kLogits, position);
    EXPECT_TRUE(token == 2 || token == 4);
  }
}

// Drawing freely first and constraining only if needed must give the distribution of constraining first.
TEST(SamplerTest, GrammarRenormalisesTheDistribution) {
  SamplingOptions options = Plain(1.0f);
  options.grammar.text = std::string("\x01\x02", 2);
  auto sampler = Make(options);
  constexpr int kDraws = 100'000;
  int ones = 0;
  for (Pos position = 0; position < kDraws; ++position) ones += sampler->Draw(kLogits, position) == 1 ? 1 : 0;
  const double expected = 1 / (1 + std::exp(kLogits[2] - kLogits[1]));
  EXPECT_NEAR(static_cast<double>(ones) / kDraws, expected, 4 * std::sqrt(expected * (1 - expected) / kDraws));
}

TEST(SamplerTest, AGrammarThatAllowsNothingGivesNoToken) {
  SamplingOptions options = Plain(0);
  options.grammar.text = "zz";  // outside of the five tokens
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), kNoToken);
}

TEST(SamplerTest, ABadGrammarIsRefused) {
  SamplingOptions options = Plain(0);
  options.grammar.text = "!";
  FakeFilterFactory factory;
  const auto sampler = Sampler::Create(options, {}, factory);
  ASSERT_FALSE(sampler.ok());
  EXPECT_EQ(sampler.status().field(), "grammar");
}

TEST(SamplerTest, LastCandidatesAreNormalisedBestFirst) {
  SamplingOptions options = Plain(0.5f);
  options.top_k = 2;
  auto sampler = Make(options);
  sampler->Draw(kLogits, 0);
  const auto candidates = sampler->LastCandidates();
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].token, 1);
  EXPECT_NEAR(candidates[0].probability, 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(candidates[0].probability + candidates[1].probability, 1, 1e-6);
}

TEST(SamplerTest, XtcDropsAllButTheLeastOfTheTopChoices) {
  SamplingOptions options = Plain(0);
  options.xtc_probability = 1;
  options.xtc_threshold = 0.2f;
  // Softmax of kLogits: token 1 has .64, token 3 .24, the others less than .1.
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), 3);
  options.xtc_threshold = 0.3f;
  EXPECT_EQ(Make(options)->Draw(kLogits, 0), 1) << "a single top choice stays";
}

TEST(SamplerTest, XtcStrikesAsOftenAsAsked) {
  SamplingOptions options = Plain(0);
  options.xtc_probability = 0.3f;
  options.xtc_threshold = 0.2f;
  auto sampler = Make(options);
  int struck = 0;
  for (Pos position = 0; position < 20'000; ++position) struck += sampler->Draw(kLogits, position) == 3 ? 1 : 0;
  EXPECT_NEAR(struck / 20'000.0, 0.3, 0.015);
}

TEST(LogprobsTest, AreTheLogSoftmax) {
  double sum = 0;
  for (float logit : kLogits) sum += std::exp(logit - LogSumExp(kLogits));
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(LogSumExp(std::vector<float>{1000.0f, 1000.0f}), 1000 + std::log(2), 1e-9);
  EXPECT_EQ(BestTokens(kLogits, 3), (std::vector<Token>{1, 3, 2}));
  EXPECT_EQ(BestTokens(kLogits, 99).size(), kLogits.size());
}

}  // namespace
}  // namespace outrider
