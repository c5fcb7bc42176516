#include "api/generation_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "api/api_test_util.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

GenerationRequest Read(const Json& body, const ApiContext& context) {
  GenerationRequest request;
  const Status status = ReadGenerationFields(body, context, &request);
  EXPECT_TRUE(status.ok()) << status.field() << ": " << status.message();
  return request;
}

TEST(GenerationFieldsTest, DefaultsComeFromTheServer) {
  TestContext context;
  context.api.sampling.temperature = 0.1f;
  context.api.sampling.seed = 42;
  context.api.random_seed = false;
  const GenerationRequest request = Read(Json::object(), context.api);
  EXPECT_EQ(request.sampling.temperature, 0.1f);
  EXPECT_EQ(request.sampling.seed, 42u);
  EXPECT_EQ(request.time_limit, Duration::max());
}

TEST(GenerationFieldsTest, EveryFieldArrives) {
  const TestContext context;
  const GenerationRequest request = Read(Json::parse(R"({"temperature": 0, "top_k": -1, "top_p": 0.5, "min_p": 0.25,
      "typical_p": 0.75, "top_n_sigma": 2, "xtc_probability": 0.5, "xtc_threshold": 0.25, "repeat_last_n": -1,
      "repeat_penalty": 1.5, "presence_penalty": -1, "frequency_penalty": 1, "dry_multiplier": 0.5, "dry_base": 2,
      "dry_allowed_length": 3, "dry_penalty_last_n": 5, "dry_sequence_breakers": ["."], "seed": 18446744073709551615,
      "ignore_eos": true, "id_slot": 3, "cache_prompt": false, "t_max_predict_ms": 250, "stop": "END"})"),
                                         context.api);
  const SamplingOptions& sampling = request.sampling;
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_k, 0);
  EXPECT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.min_p, 0.25f);
  EXPECT_EQ(sampling.typical_p, 0.75f);
  EXPECT_EQ(sampling.top_n_sigma, 2.0f);
  EXPECT_EQ(sampling.xtc_probability, 0.5f);
  EXPECT_EQ(sampling.xtc_threshold, 0.25f);
  EXPECT_EQ(sampling.repeat_last_n, -1);
  EXPECT_EQ(sampling.repeat_penalty, 1.5f);
  EXPECT_EQ(sampling.presence_penalty, -1.0f);
  EXPECT_EQ(sampling.frequency_penalty, 1.0f);
  EXPECT_EQ(sampling.dry_multiplier, 0.5f);
  EXPECT_EQ(sampling.dry_base, 2.0f);
  EXPECT_EQ(sampling.dry_allowed_length, 3);
  EXPECT_EQ(sampling.dry_penalty_last_n, 5);
  EXPECT_EQ(sampling.dry_sequence_breakers, std::vector<std::string>{"."});
  EXPECT_EQ(sampling.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.slot, 3);
  EXPECT_FALSE(request.reuse_prefix);
  EXPECT_EQ(request.time_limit, std::chrono::milliseconds(250));
  EXPECT_EQ(request.stop, std::vector<std::string>{"END"});
}

TEST(GenerationFieldsTest, SeedsAreRandomUnlessGiven) {
  const TestContext context;
  std::set<uint64_t> seeds;
  for (int i = 0; i < 4; ++i) seeds.insert(Read({{"seed", -1}}, context.api).sampling.seed);
  EXPECT_GT(seeds.size(), 1u);
  EXPECT_EQ(Read({{"seed", 5}}, context.api).sampling.seed, 5u);
  EXPECT_EQ(Read({{"seed", -2}}, context.api).sampling.seed, static_cast<uint64_t>(int64_t{-2}));
}

TEST(GenerationFieldsTest, LogitBiasInAllItsForms) {
  const TestContext context;
  using Biases = std::vector<std::pair<Token, float>>;
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Read(Json::parse(R"({"logit_bias": {"65": -100, "66": 5, "ab": 1}})"), context.api).sampling.logit_bias,
            (Biases{{65, kBanned}, {66, 5.0f}, {'a', 1.0f}, {'b', 1.0f}}));
  EXPECT_EQ(Read(Json::parse(R"({"logit_bias": [[65, false], ["c", -1.5]]})"), context.api).sampling.logit_bias,
            (Biases{{65, kBanned}, {'c', -1.5f}}));
}

TEST(GenerationFieldsTest, LogitBiasIsBounded) {
  const TestContext context;
  const auto refused = [&](const Json& biases) {
    GenerationRequest request;
    return ReadGenerationFields({{"logit_bias", biases}}, context.api, &request);
  };
  Json list = Json::array();
  for (size_t i = 0; i < kMaxLogitBiases; ++i) list.push_back({i % 256, 1});
  EXPECT_TRUE(refused(list).ok());
  list.push_back({0, 1});
  EXPECT_NE(refused(list).message().find("4096"), std::string::npos);
  Json texts = Json::array();
  for (int i = 0; i < 5; ++i) texts.push_back({std::string(1000, 'x'), 1});
  EXPECT_EQ(refused(texts).field(), "logit_bias") << "each text is 1000 tokens";
  const Status long_key = refused({{std::string(100'000, 'x'), 1}});
  EXPECT_EQ(long_key.field(), "logit_bias");
  EXPECT_LT(long_key.message().size(), 1000u);
}

TEST(GenerationFieldsTest, NonsenseIsRefusedByName) {
  const TestContext context;
  const std::pair<const char*, const char*> cases[] = {
      {R"({"temperature": -1})", "temperature"},
      {R"({"temperature": "hot"})", "temperature"},
      {R"({"temperature": 101})", "temperature"},
      {R"({"top_p": 1.5})", "top_p"},
      {R"({"top_k": -2})", "top_k"},
      {R"({"top_k": 1.5})", "top_k"},
      {R"({"min_p": -0.1})", "min_p"},
      {R"({"repeat_penalty": 0})", "repeat_penalty"},
      {R"({"dry_base": 0.5})", "dry_base"},
      {R"({"dry_sequence_breakers": 5})", "dry_sequence_breakers"},
      {R"({"seed": "x"})", "seed"},
      {R"({"seed": 1.5})", "seed"},
      {R"({"stop": 5})", "stop"},
      {R"({"stop": ""})", "stop"},
      {R"({"stop": ["a", 5]})", "stop"},
      {R"({"stop": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"]})", "stop"},
      {R"({"ignore_eos": 1})", "ignore_eos"},
      {R"({"id_slot": 4})", "id_slot"},
      {R"({"logit_bias": 5})", "logit_bias"},
      {R"({"logit_bias": {"258": 1}})", "logit_bias"},
      {R"({"logit_bias": {"-1": 1}})", "logit_bias"},
      {R"({"logit_bias": {"99999999999": 1}})", "logit_bias"},
      {R"({"logit_bias": {"": 1}})", "logit_bias"},
      {R"({"logit_bias": {"65": "x"}})", "logit_bias"},
      {R"({"logit_bias": {"65": true}})", "logit_bias"},
      {R"({"logit_bias": {"65": 1e300}})", "logit_bias"},
      {R"({"logit_bias": [65]})", "logit_bias"},
      {R"({"logit_bias": [[65, 1, 2]]})", "logit_bias"},
      {R"({"logit_bias": [[18446744073709551615, 1]]})", "logit_bias"},
      {R"({"logit_bias": [[-5, 1]]})", "logit_bias"},
      {R"([])", ""},
  };
  for (const auto& [body, field] : cases) {
    GenerationRequest request;
    const Status status = ReadGenerationFields(Json::parse(body), context.api, &request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << body;
    EXPECT_EQ(status.field(), field) << body;
  }
}

Result<int> MaxTokens(const std::string& body, int server_limit,
                      MaxTokensLimits limits = MaxTokensLimits::kFromMinusOne) {
  TestContext context;
  context.api.max_tokens = server_limit;
  GenerationRequest request;
  const Status status =
      ReadMaxTokens(Json::parse(body), {"max_completion_tokens", "max_tokens"}, limits, context.api, &request);
  if (!status.ok()) return status;
  return request.max_tokens;
}

TEST(MaxTokensTest, FirstNameWinsAndTheServerBounds) {
  EXPECT_EQ(*MaxTokens("{}", -1), -1);
  EXPECT_EQ(*MaxTokens("{}", 50), 50);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 10})", 50), 10);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 100})", 50), 100) << "the server's is a default, not a limit";
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": -1})", 50), 50);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": -1})", -1), -1);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 2147483647})", -1), 2147483647);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 5, "max_completion_tokens": 7})", -1), 7);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 5, "max_completion_tokens": null})", -1), 5);
}

TEST(MaxTokensTest, NonsenseIsRefused) {
  for (const char* body : {R"({"max_tokens": -2})", R"({"max_tokens": 2147483648})", R"({"max_tokens": 1e18})",
                           R"({"max_tokens": "5"})", R"({"max_tokens": 1.5})"}) {
    const Result<int> result = MaxTokens(body, -1);
    ASSERT_FALSE(result.ok()) << body;
    EXPECT_EQ(result.status().field(), "max_tokens");
  }
}

TEST(MaxTokensTest, ZeroAndNoLimitAreForSomeProtocolsOnly) {
  const std::string zero = R"({"max_tokens": 0})", none = R"({"max_tokens": -1})";
  EXPECT_FALSE(MaxTokens(zero, -1, MaxTokensLimits::kPositive).ok());
  EXPECT_FALSE(MaxTokens(none, -1, MaxTokensLimits::kPositive).ok());
  EXPECT_EQ(*MaxTokens(none, -1, MaxTokensLimits::kFromMinusOne), -1);
  EXPECT_EQ(*MaxTokens(zero, -1, MaxTokensLimits::kFromMinusOne), 0);
  EXPECT_EQ(*MaxTokens(zero, 5, MaxTokensLimits::kFromMinusOne), 0);
  EXPECT_EQ(*MaxTokens(none, 5, MaxTokensLimits::kFromMinusOne), 5);
}

TEST(GenerationFieldsTest, SpeculationInBothSpellings) {
  TestContext context;
  context.api.drafters = {"suffix", "model"};
  const SpeculationOptions nested =
      Read(Json::parse(
               R"({"speculative": {"enabled": false, "types": ["model"], "n_max": 5, "n_min": 1, "p_min": 0.5}})"),
           context.api)
          .speculation;
  EXPECT_FALSE(nested.enabled);
  EXPECT_FALSE(nested.provenance);
  EXPECT_TRUE(Read(Json::parse(R"({"speculative": {"provenance": true}})"), context.api).speculation.provenance);
  EXPECT_EQ(nested.types, std::vector<std::string>{"model"});
  EXPECT_EQ(nested.n_max, 5);
  EXPECT_EQ(nested.n_min, 1);
  EXPECT_EQ(nested.p_min, 0.5f);
  const SpeculationOptions flat =
      Read(Json::parse(R"({"speculative.n_max": 3, "speculative.n_min": 2, "speculative.p_min": 0.25,
                           "speculative.types": "suffix"})"),
           context.api)
          .speculation;
  EXPECT_TRUE(flat.enabled);
  EXPECT_EQ(flat.types, std::vector<std::string>{"suffix"});
  EXPECT_EQ(flat.n_max, 3);
  EXPECT_EQ(flat.n_min, 2);
  EXPECT_EQ(flat.p_min, 0.25f);
  EXPECT_FALSE(Read(Json::parse(R"({"speculative.types": "none"})"), context.api).speculation.enabled);
  EXPECT_EQ(Read(Json::parse(R"({"speculative.types": ["draft-simple"]})"), context.api).speculation.types,
            std::vector<std::string>{"model"})
      << "llama.cpp's name for it";
}

TEST(GenerationFieldsTest, SpeculationThatTheServerCannotDoIsRefused) {
  TestContext context;
  context.api.drafters = {"suffix", "model"};
  const std::pair<const char*, const char*> cases[] = {
      {R"({"speculative.types": "ngram-mod"})", "speculative.types"},
      {R"({"speculative": {"types": ["suffix", "ngram-mod"]}})", "speculative.types"},
      {R"({"speculative": {"n_max": -1}})", "speculative.n_max"},
      {R"({"speculative": {"n_min": 1025}})", "speculative.n_min"},
      {R"({"speculative.n_max": 1025})", "speculative.n_max"},
      {R"({"speculative.p_min": 1.5})", "speculative.p_min"},
      {R"({"speculative": {"enabled": "no"}})", "speculative.enabled"},
      {R"({"speculative": true})", "speculative"},
  };
  for (const auto& [body, field] : cases) {
    GenerationRequest request;
    const Status status = ReadGenerationFields(Json::parse(body), context.api, &request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << body;
    EXPECT_EQ(status.field(), field) << body;
  }
  context.api.drafters = {};
  GenerationRequest request;
  EXPECT_EQ(ReadGenerationFields({{"speculative.types", "suffix"}}, context.api, &request).message(),
            "this server runs without drafters");
  EXPECT_TRUE(ReadGenerationFields({{"speculative.types", "none"}}, context.api, &request).ok());
}

TEST(GenerationFieldsTest, WhatWouldChangeTheTextAndIsMissingIsRefused) {
  const TestContext context;
  GenerationRequest request;
  const std::pair<const char*, const char*> cases[] = {{R"({"mirostat": 3})", "mirostat"},
                                                       {R"({"adaptive_target": 0.5})", "adaptive_target"},
                                                       {R"({"lora": [{"id": 0, "scale": 1}]})", "lora"}};
  for (const auto& [body, field] : cases) {
    EXPECT_EQ(ReadGenerationFields(Json::parse(body), context.api, &request).field(), field) << body;
  }
  const Json off = Json::parse(R"({"mirostat": 0, "mirostat_tau": 5, "adaptive_target": -1.0, "lora": []})");
  EXPECT_TRUE(ReadGenerationFields(off, context.api, &request).ok());
}

TEST(GenerationFieldsTest, ATimeLimitThatIsNotPositiveIsNone) {
  const TestContext context;
  for (const int limit : {0, -1}) {
    EXPECT_EQ(Read({{"t_max_predict_ms", limit}}, context.api).time_limit, Duration::max());
  }
  GenerationRequest request;
  EXPECT_EQ(ReadGenerationFields({{"t_max_predict_ms", -2}}, context.api, &request).field(), "t_max_predict_ms");
}

}  // namespace
}  // namespace outrider
