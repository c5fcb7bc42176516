#include <gtest/gtest.h>

#include <cmath>

#include "api/api_test_util.h"

namespace outrider {
namespace {

ParsedRequest Parse(const std::string& body, const TestContext& context) {
  Result<ParsedRequest> request = ParseLlamaCompletion(Json::parse(body), "", context.api);
  EXPECT_TRUE(request.ok()) << request.status().field() << ": " << request.status().message();
  return std::move(*request);
}

TEST(LlamaCompletionTest, WholeAnswer) {
  const TestContext context;
  ParsedRequest request = Parse(
      R"({"prompt": "hi", "n_predict": 8, "temperature": 0.5, "return_tokens": true, "logit_bias": [[65, false]]})",
      context);
  EXPECT_EQ(request.generation.max_tokens, 8);
  Chunk last = MakeLastChunk("b\n", FinishReason::kStopString);
  last.completion->stop_string = "END";
  const Json answer = Whole(&request, {MakeChunk("a"), last});
  EXPECT_EQ(answer["content"], "ab\n");
  EXPECT_EQ(answer["tokens"], Json({'a', 'b', '\n'}));
  EXPECT_EQ(answer["stop"], true);
  EXPECT_EQ(answer["stop_type"], "word");
  EXPECT_EQ(answer["stopping_word"], "END");
  EXPECT_EQ(answer["id_slot"], 2);
  EXPECT_EQ(answer["index"], 0);
  EXPECT_EQ(answer["model"], "test-model");
  EXPECT_EQ(answer["tokens_predicted"], 5);
  EXPECT_EQ(answer["tokens_evaluated"], 3);
  EXPECT_EQ(answer["tokens_cached"], 8);
  EXPECT_EQ(answer["truncated"], false);
  EXPECT_EQ(answer["has_new_line"], true);
  EXPECT_EQ(answer["prompt"], "<bos>hi");
  EXPECT_EQ(answer["generation_settings"]["temperature"], 0.5);
  EXPECT_EQ(answer["generation_settings"]["n_predict"], 8);
  EXPECT_EQ(answer["generation_settings"]["logit_bias"][0]["token"], 65);
  EXPECT_TRUE(answer["generation_settings"]["logit_bias"][0]["bias"].is_null()) << "JSON has no infinity";
  EXPECT_EQ(answer["timings"]["prompt_n"], 7);
  EXPECT_FALSE(answer.contains("completion_probabilities"));
}

TEST(LlamaCompletionTest, StopTypes) {
  const TestContext context;
  const std::pair<FinishReason, const char*> cases[] = {{FinishReason::kEndOfText, "eos"},
                                                        {FinishReason::kLength, "limit"},
                                                        {FinishReason::kTimeLimit, "limit"},
                                                        {FinishReason::kStopString, "word"},
                                                        {FinishReason::kCancelled, "none"}};
  for (const auto& [reason, name] : cases) {
    ParsedRequest request = Parse(R"({"prompt": "hi"})", context);
    EXPECT_EQ(Whole(&request, {MakeLastChunk("x", reason)})["stop_type"], name);
  }
}

TEST(LlamaCompletionTest, StreamedAnswer) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi", "stream": true, "timings_per_token": true})", context);
  EXPECT_TRUE(request.stream);
  const std::vector<Json> events = Stream(&request, {MakeChunk("a"), MakeLastChunk("b")});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["content"], "a");
  EXPECT_EQ(events[0]["tokens"], Json::array({'a'}));
  EXPECT_EQ(events[0]["stop"], false);
  EXPECT_TRUE(events[0].contains("timings"));
  EXPECT_EQ(events[1]["content"], "b");
  EXPECT_EQ(events[2]["content"], "");
  EXPECT_EQ(events[2]["stop"], true);
  EXPECT_EQ(events[2]["stop_type"], "eos");
}

TEST(LlamaCompletionTest, Probabilities) {
  const TestContext context;
  ParsedRequest logs = Parse(R"({"prompt": "hi", "n_probs": 2})", context);
  EXPECT_EQ(logs.generation.top_logprobs, 2);
  EXPECT_FALSE(logs.generation.probabilities_after_filters);
  const Json item = Whole(&logs, {MakeLastChunk("a")})["completion_probabilities"][0];
  EXPECT_EQ(item["id"], 97);
  EXPECT_EQ(item["token"], "a");
  EXPECT_EQ(item["bytes"], Json::array({97}));
  EXPECT_EQ(item["logprob"], -0.5);
  EXPECT_EQ(item["top_logprobs"][1]["id"], 122);

  ParsedRequest probabilities =
      Parse(R"({"prompt": "hi", "n_probs": 2, "post_sampling_probs": true, "stream": true})", context);
  EXPECT_TRUE(probabilities.generation.probabilities_after_filters);
  const Json after = Stream(&probabilities, {MakeLastChunk("a")})[0]["completion_probabilities"][0];
  EXPECT_NEAR(after["prob"].get<double>(), std::exp(-0.5), 1e-6);
  EXPECT_NEAR(after["top_probs"][1]["prob"].get<double>(), std::exp(-1.5), 1e-6);
}

// A step may make several tokens; a client that reads probabilities expects one token in each event.
TEST(LlamaCompletionTest, EachTokenHasAnEventIfProbabilitiesAreAskedFor) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi", "n_probs": 1, "stream": true})", context);
  const std::vector<Json> events = Stream(&request, {MakeChunk("abc"), MakeLastChunk("")});
  ASSERT_EQ(events.size(), 4u);
  const char* texts[] = {"a", "b", "c"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(events[i]["content"], texts[i]);
    EXPECT_EQ(events[i]["completion_probabilities"].size(), 1u);
    EXPECT_EQ(events[i]["tokens_predicted"], i + 1);
  }
  // What was held back for a stop string may be text of an earlier token: no byte is lost or sent twice.
  Chunk odd = MakeChunk("abc");
  odd.text = "xabc";
  ParsedRequest again = Parse(R"({"prompt": "hi", "n_probs": 1, "stream": true})", context);
  std::string text;
  for (const Json& event : Stream(&again, {odd, MakeLastChunk("")})) text += event["content"].get<std::string>();
  EXPECT_EQ(text, "xabc");
}

TEST(LlamaCompletionTest, OnlyTheFieldsThatWereAskedFor) {
  const TestContext context;
  ParsedRequest request = Parse(
      R"({"prompt": "hi", "n_predict": 8, "response_fields": ["content", "generation_settings/n_predict", "no/such"]})",
      context);
  EXPECT_EQ(Whole(&request, {MakeLastChunk("a")}), Json({{"content", "a"}, {"generation_settings/n_predict", 8}}));
  ParsedRequest all = Parse(R"({"prompt": "hi", "response_fields": []})", context);
  EXPECT_TRUE(Whole(&all, {MakeLastChunk("a")}).contains("timings"));
}

TEST(LlamaCompletionTest, TellsHowMuchOfThePromptHasBeenRead) {
  const TestContext context;
  ParsedRequest request =
      Parse(R"({"prompt": "hi", "stream": true, "return_progress": true, "timings_per_token": true})", context);
  EXPECT_TRUE(request.generation.report_progress);
  Chunk chunk = MakeChunk("a");
  chunk.progress = {{3, 1, 1, 0}, {3, 1, 3, 20}};
  const std::vector<Json> events = Stream(&request, {chunk, MakeLastChunk("b")});
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["prompt_progress"], Json::parse(R"({"total": 3, "cache": 1, "processed": 1, "time_ms": 0})"));
  EXPECT_EQ(events[0]["timings"]["prompt_n"], 0);
  EXPECT_EQ(events[0]["timings"]["predicted_n"], 0);
  EXPECT_EQ(events[1]["prompt_progress"]["processed"], 3);
  EXPECT_EQ(events[1]["timings"]["prompt_n"], 2);
  EXPECT_FALSE(events[2].contains("prompt_progress"));
  EXPECT_FALSE(Parse(R"({"prompt": "hi", "return_progress": true})", context).generation.report_progress)
      << "an answer that is not streamed has no place for it";
}

TEST(LlamaCompletionTest, EndTokensAreListedAsBannedWithIgnoreEos) {
  const TestContext context;
  ParsedRequest with = Parse(R"({"prompt": "hi", "ignore_eos": true})", context);
  const Json banned = Whole(&with, {MakeLastChunk("a")})["generation_settings"]["logit_bias"];
  ASSERT_FALSE(banned.empty());
  for (const Json& entry : banned) EXPECT_TRUE(entry["bias"].is_null());
  ParsedRequest without = Parse(R"({"prompt": "hi"})", context);
  EXPECT_TRUE(Whole(&without, {MakeLastChunk("a")})["generation_settings"]["logit_bias"].empty());
}

TEST(LlamaCompletionTest, SaysWhetherTheContextWasFull) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi"})", context);
  Chunk last = MakeLastChunk("a", FinishReason::kLength);
  last.completion->truncated = true;
  EXPECT_EQ(Whole(&request, {last})["truncated"], true);
}

TEST(LlamaCompletionTest, GrammarAndSchema) {
  const TestContext context;
  EXPECT_EQ(Parse(R"({"prompt": "x", "grammar": "root ::= \"a\""})", context).generation.sampling.grammar.text,
            "root ::= \"a\"");
  EXPECT_EQ(Parse(R"({"prompt": "x", "json_schema": {"type": "boolean"}})", context).generation.sampling.grammar.text,
            Schema({{"type", "boolean"}}).ToGrammar());
}

TEST(LlamaCompletionTest, ProvenanceIsToldIfAskedFor) {
  const TestContext context;
  const std::string body = R"({"prompt": "hi", "speculative": {"provenance": true})";
  const Json expected = Json::parse(R"([{"text": "a", "drafter": "suffix"}, {"text": "b", "drafter": null}])");
  Chunk chunk = MakeLastChunk("ab");
  chunk.tokens[0].drafter = "suffix";
  ParsedRequest whole = Parse(body + "}", context), streamed = Parse(body + R"(, "stream": true})", context);
  EXPECT_EQ(Whole(&whole, {chunk})["provenance"], expected);
  EXPECT_EQ(Stream(&streamed, {chunk})[0]["provenance"], expected);
  ParsedRequest without = Parse(R"({"prompt": "hi"})", context);
  EXPECT_FALSE(Whole(&without, {chunk}).contains("provenance"));
}

TEST(LlamaCompletionTest, BadInputIsRefusedByName) {
  ExpectRefused(&ParseLlamaCompletion,
                {{R"(5)", ""},
                 {R"({})", "prompt"},
                 {R"({"prompt": {"prompt_string": 5}})", "prompt.prompt_string"},
                 {R"({"prompt": {"prompt_string": "x", "multimodal_data": ["aGk="]}})", "prompt.multimodal_data"},
                 {R"({"prompt": "x", "response_fields": [5]})", "response_fields"},
                 {R"({"prompt": [1, 999]})", "prompt"},
                 {R"({"prompt": "x", "n_predict": -7})", "n_predict"},
                 {R"({"prompt": "x", "n_probs": -1})", "n_probs"},
                 {R"({"prompt": "x", "n_probs": 1001})", "n_probs"},
                 {R"({"prompt": "x", "stream": "yes"})", "stream"},
                 {R"({"prompt": "x", "return_tokens": 1})", "return_tokens"},
                 {R"({"prompt": "x", "post_sampling_probs": 1})", "post_sampling_probs"},
                 {R"({"prompt": "x", "grammar": "a", "json_schema": {}})", "grammar"},
                 {R"({"prompt": "x", "json_schema": []})", "json_schema"}});
}

}  // namespace
}  // namespace outrider
