#include "api/fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "api/api_test_util.h"

namespace outrider {
namespace {

TEST(FieldReaderTest, AbsentAndNullLeaveTheDefault) {
  const Json body = {{"a", nullptr}};
  FieldReader fields(body);
  bool flag = true;
  int number = 7;
  float real = 0.5f;
  std::string text = "x";
  uint64_t seed = 3;
  std::vector<std::string> list = {"y"};
  for (const char* name : {"a", "b"}) {
    EXPECT_FALSE(fields.Has(name));
    fields.Bool(name, &flag);
    fields.Int(name, 0, 1, &number);
    fields.Float(name, 0, 0.1, &real);
    fields.String(name, &text);
    fields.Seed(name, &seed);
    fields.StringOrList(name, 1, &list);
  }
  EXPECT_TRUE(fields.status().ok());
  EXPECT_TRUE(flag && number == 7 && real == 0.5f && text == "x" && seed == 3 && list.size() == 1);
}

TEST(FieldReaderTest, ErrorsNameFieldAndRangeAndTheFirstOneStays) {
  const Json body = {{"t", 3}, {"n", 1.5}};
  FieldReader fields(body, "outer.");
  float real = 0;
  int number = 0;
  fields.Float("t", 0, 2, &real);
  fields.Int("n", 1, 5, &number);
  EXPECT_EQ(fields.status().message(), "must be a number between 0 and 2");
  EXPECT_EQ(fields.status().field(), "outer.t");
}

TEST(FieldReaderTest, WholeNumbersMayBeWrittenAsReals) {
  const Json body = Json::parse(R"({"a": 10.0, "b": 1e30, "c": 18446744073709551615, "d": true})");
  FieldReader good(body);
  int number = 0;
  good.Int("a", 0, 20, &number);
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(number, 10);
  for (const char* name : {"b", "c", "d"}) {
    FieldReader bad(body);
    bad.Int(name, 0, std::numeric_limits<int>::max(), &number);
    EXPECT_EQ(bad.status().field(), name);
  }
}

TEST(FieldReaderTest, BodiesThatAreNoObjects) {
  const Json list = Json::array();
  EXPECT_FALSE(FieldReader(list).status().ok());
  EXPECT_EQ(FieldReader(list, "text.").status().field(), "text");
}

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
      "ignore_eos": true, "id_slot": 3, "cache_prompt": false, "t_max_predict_ms": 250, "stop": "END", "n": 1})"),
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
      {R"({"n": 2})", "n"},
      {R"({"n": 0})", "n"},
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

Result<int> MaxTokens(const std::string& body, int server_limit) {
  TestContext context;
  context.api.max_tokens = server_limit;
  GenerationRequest request;
  const Status status = ReadMaxTokens(Json::parse(body), {"max_completion_tokens", "max_tokens"},
                                      MaxTokensLimits::kFromMinusOne, context.api, &request);
  if (!status.ok()) return status;
  return request.max_tokens;
}

TEST(MaxTokensTest, FirstNameWinsAndTheServerBounds) {
  EXPECT_EQ(*MaxTokens("{}", -1), -1);
  EXPECT_EQ(*MaxTokens("{}", 50), 50);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 10})", 50), 10);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 100})", 50), 50);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": -1})", 50), 50);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": -1})", -1), -1);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 2147483647})", -1), 2147483647);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 5, "max_completion_tokens": 7})", -1), 7);
  EXPECT_EQ(*MaxTokens(R"({"max_tokens": 5, "max_completion_tokens": null})", -1), 5);
}

TEST(MaxTokensTest, NonsenseIsRefused) {
  for (const char* body : {R"({"max_tokens": 0})", R"({"max_tokens": -2})", R"({"max_tokens": 2147483648})",
                           R"({"max_tokens": 1e18})", R"({"max_tokens": "5"})", R"({"max_tokens": 1.5})"}) {
    const Result<int> result = MaxTokens(body, -1);
    ASSERT_FALSE(result.ok()) << body;
    EXPECT_EQ(result.status().field(), "max_tokens");
  }
}

TEST(OutputFormatTest, AllWaysToAskForJson) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "null"},
      {R"({"response_format": {"type": "text"}})", "null"},
      {R"({"response_format": {"type": "json_object"}})", R"({"type": "object"})"},
      {R"({"response_format": {"type": "json_object", "schema": {"type": "array"}}})", R"({"type": "array"})"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "null"}}}})",
       R"({"type": "null"})"},
      {R"({"json_schema": {}})", R"({"type": "object"})"},
  };
  for (const auto& [body, schema] : cases) {
    ChatInput input;
    EXPECT_TRUE(ReadOutputFormat(Json::parse(body), &input).ok()) << body;
    EXPECT_EQ(input.json_schema, Json::parse(schema)) << body;
  }
}

TEST(OutputFormatTest, NonsenseIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"response_format": "json"})", "response_format"},
      {R"({"response_format": {}})", "response_format.type"},
      {R"({"response_format": {"type": "xml"}})", "response_format.type"},
      {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {}}})", "response_format.json_schema.schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": 5}}})",
       "response_format.json_schema.schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "wizard"}}}})",
       "response_format.json_schema.schema"},
      {R"({"json_schema": 5})", "json_schema"},
      {R"({"json_schema": {"type": "wizard"}})", "json_schema"},
      {R"({"grammar": 5})", "grammar"},
      {R"({"grammar": "root ::= x", "json_schema": {}})", "grammar"},
  };
  for (const auto& [body, field] : cases) {
    ChatInput input;
    EXPECT_EQ(ReadOutputFormat(Json::parse(body), &input).field(), field) << body;
  }
}

TEST(OutputFormatTest, SetGrammarTakesEither) {
  GenerationRequest request;
  EXPECT_TRUE(SetGrammar("root ::= \"x\"", nullptr, &request).ok());
  EXPECT_EQ(request.sampling.grammar.text, "root ::= \"x\"");
  EXPECT_TRUE(SetGrammar("", {{"type", "boolean"}}, &request).ok());
  EXPECT_NE(request.sampling.grammar.text.find("true"), std::string::npos);
  EXPECT_TRUE(SetGrammar("", nullptr, &request).ok());
  EXPECT_EQ(request.sampling.grammar, GrammarOptions());
}

TEST(AnswerPartsTest, IdsDiffer) {
  const std::string id = MakeId("chatcmpl-");
  EXPECT_TRUE(id.starts_with("chatcmpl-"));
  EXPECT_EQ(id.size(), std::string("chatcmpl-").size() + 24);
  EXPECT_NE(id, MakeId("chatcmpl-"));
}

TEST(AnswerPartsTest, TimingsAreFiniteAndCountSteps) {
  const Json timings = TimingsJson({10, 4, 11, 1.0, 50.0, 100.0});
  EXPECT_EQ(timings["cache_n"], 4);
  EXPECT_EQ(timings["prompt_n"], 10);
  EXPECT_EQ(timings["prompt_per_token_ms"], 5.0);
  EXPECT_EQ(timings["prompt_per_second"], 200.0);
  EXPECT_EQ(timings["predicted_n"], 11);
  EXPECT_EQ(timings["predicted_per_token_ms"], 10.0);
  EXPECT_EQ(timings["predicted_per_second"], 100.0);
  const Json idle = TimingsJson({});
  for (const auto& [name, value] : idle.items()) {
    EXPECT_TRUE(value.is_number() && std::isfinite(value.get<double>())) << name;
  }
}

TEST(AnswerPartsTest, FinishReasons) {
  Completion completion;
  EXPECT_STREQ(OpenAiFinishReason(completion, false), "stop");
  EXPECT_STREQ(OpenAiFinishReason(completion, true), "tool_calls");
  completion.reason = FinishReason::kStopString;
  EXPECT_STREQ(OpenAiFinishReason(completion, false), "stop");
  for (const FinishReason reason : {FinishReason::kLength, FinishReason::kTimeLimit}) {
    completion.reason = reason;
    EXPECT_STREQ(OpenAiFinishReason(completion, true), "length");
  }
}

TEST(AnswerPartsTest, EventsAreFramed) {
  EXPECT_EQ(SseEvent("", {{"a", "x\ny"}}), "data: {\"a\":\"x\\ny\"}\n\n");
  EXPECT_EQ(SseEvent("ping", Json::object()), "event: ping\ndata: {}\n\n");
}

TEST(ErrorsTest, OpenAiShape) {
  const Json error = OpenAiError(InvalidArgument("must be a number", "temperature"));
  EXPECT_EQ(error,
            Json::parse(R"({"error": {"message": "temperature: must be a number", "type": "invalid_request_error",
                                  "param": "temperature", "code": null}})"));
  EXPECT_EQ(OpenAiError(Internal("x"))["error"]["type"], "server_error");
  EXPECT_TRUE(OpenAiError(Internal("x"))["error"]["param"].is_null());
  EXPECT_EQ(OpenAiError({StatusCode::kUnauthenticated, "x"})["error"]["type"], "authentication_error");
  EXPECT_EQ(OpenAiError({StatusCode::kResourceExhausted, "x"})["error"]["type"], "rate_limit_error");
  EXPECT_EQ(OpenAiError(NotFound("x"))["error"]["type"], "not_found_error");
}

TEST(ErrorsTest, AnthropicShape) {
  EXPECT_EQ(
      AnthropicError(InvalidArgument("is required", "messages")),
      Json::parse(
          R"({"type": "error", "error": {"type": "invalid_request_error", "message": "messages: is required"}})"));
  EXPECT_EQ(AnthropicError(Unavailable("x"))["error"]["type"], "overloaded_error");
  EXPECT_EQ(AnthropicError(Internal("x"))["error"]["type"], "api_error");
}

TEST(ErrorsTest, HttpStatusOfEachCode) {
  EXPECT_EQ(HttpStatus(StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatus(StatusCode::kUnauthenticated), 401);
  EXPECT_EQ(HttpStatus(StatusCode::kNotFound), 404);
  EXPECT_EQ(HttpStatus(StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(HttpStatus(StatusCode::kInternal), 500);
  EXPECT_EQ(HttpStatus(StatusCode::kUnsupported), 501);
  EXPECT_EQ(HttpStatus(StatusCode::kUnavailable), 503);
}

}  // namespace
}  // namespace outrider
