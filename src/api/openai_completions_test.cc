#include <gtest/gtest.h>

#include "api/api_test_util.h"

namespace outrider {
namespace {

ParsedRequest Parse(const std::string& body, const TestContext& context) {
  Result<ParsedRequest> request = ParseTextCompletion(Json::parse(body), "", context.api);
  EXPECT_TRUE(request.ok()) << request.status().field() << ": " << request.status().message();
  return std::move(*request);
}

TEST(OpenAiCompletionsTest, PromptForms) {
  const TestContext context;
  const std::vector<Token> text = {256, 'h', 'i'};
  EXPECT_EQ(Parse(R"({"prompt": "hi"})", context).generation.prompt, text);
  EXPECT_EQ(Parse(R"({"prompt": ["hi"]})", context).generation.prompt, text);
  EXPECT_EQ(Parse(R"({"prompt": [104, 105]})", context).generation.prompt, (std::vector<Token>{'h', 'i'}));
  EXPECT_EQ(Parse(R"({"prompt": [[104, 105]]})", context).generation.prompt, (std::vector<Token>{'h', 'i'}));
  EXPECT_EQ(Parse(R"({"prompt": ["h", 105, "x"]})", context).generation.prompt,
            (std::vector<Token>{256, 'h', 'i', 'x'}));
}

// What cannot fit is not tokenised first.
TEST(OpenAiCompletionsTest, LongTextsAreRefusedByTheirSize) {
  class CountingTokenizer : public FakeTokenizer {
   public:
    std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const override {
      tokenized += text.size();
      return FakeTokenizer::Tokenize(text, add_bos, special);
    }
    mutable size_t tokenized = 0;
  } tokenizer;
  const TestContext context;
  const ApiContext api{tokenizer, *context.chat, "test-model", 0, 4096, 4, {}, -1};
  const auto refused = [&](ParseRequest parse, const Json& body) {
    tokenizer.tokenized = 0;
    const Status status = parse(body, "", api).status();
    EXPECT_LT(tokenizer.tokenized, 10'000u);
    return status.field();
  };
  EXPECT_EQ(refused(ParseTextCompletion, {{"prompt", std::string(100'000, 'x')}}), "prompt");
  Json many = Json::array({5});
  for (int i = 0; i < 10'000; ++i) many.push_back("xx");
  EXPECT_EQ(refused(ParseTextCompletion, {{"prompt", many}}), "prompt");
  const Json turn = {{"role", "user"}, {"content", std::string(100'000, 'x')}};
  EXPECT_EQ(refused(ParseChatCompletion, {{"messages", Json::array({turn})}}), "messages");
}

TEST(OpenAiCompletionsTest, WholeAnswer) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi", "max_tokens": 4, "grammar": "root ::= \"x\""})", context);
  EXPECT_EQ(request.generation.max_tokens, 4);
  EXPECT_EQ(request.generation.top_logprobs, -1);
  EXPECT_EQ(request.generation.sampling.grammar.text, "root ::= \"x\"");
  const Json answer = Whole(&request, {MakeChunk("a"), MakeLastChunk("b", FinishReason::kStopString)});
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"],
            Json::parse(R"([{"index": 0, "text": "ab", "logprobs": null, "finish_reason": "stop"}])"));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 10);
  EXPECT_EQ(answer["seed"], 99);
}

TEST(OpenAiCompletionsTest, StreamedAnswer) {
  const TestContext context;
  ParsedRequest request =
      Parse(R"({"prompt": "hi", "stream": true, "stream_options": {"include_usage": true}})", context);
  const std::vector<Json> events = Stream(&request, {MakeChunk("a"), MakeLastChunk("b")});
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["choices"][0]["text"], "a");
  EXPECT_TRUE(events[0]["usage"].is_null());
  EXPECT_EQ(events[1]["choices"][0]["text"], "b");
  EXPECT_EQ(events[2]["choices"][0]["text"], "");
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[2]["timings"]["predicted_n"], 5);
  EXPECT_EQ(events[3]["choices"], Json::array());
  EXPECT_EQ(events[3]["usage"]["completion_tokens"], 5);
  EXPECT_EQ(events[4], "[DONE]");
}

TEST(OpenAiCompletionsTest, LegacyLogprobs) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi", "logprobs": 2})", context);
  EXPECT_EQ(request.generation.top_logprobs, 2);
  const Json answer = Whole(&request, {MakeChunk("a"), MakeChunk("\xC3\xA9"), MakeLastChunk("z")});
  EXPECT_EQ(answer["choices"][0]["logprobs"]["text_offset"], Json({0, 1, 2, 2}));
  EXPECT_EQ(answer["choices"][0]["logprobs"]["token_logprobs"], Json({-0.5, -0.5, -0.5, -0.5}));
  EXPECT_EQ(answer["choices"][0]["logprobs"]["tokens"][0], "a");
  EXPECT_EQ(answer["choices"][0]["logprobs"]["top_logprobs"][0], Json({{"a", -0.5}, {"z", -1.5}}));
  EXPECT_EQ(answer["choices"][0]["logprobs"]["top_logprobs"][3], Json({{"z", -0.5}}));  // the likelier of two alike
  ParsedRequest none = Parse(R"({"prompt": "hi", "logprobs": 0})", context);
  EXPECT_TRUE(Whole(&none, {MakeLastChunk("a")})["choices"][0]["logprobs"]["top_logprobs"].is_null());
}

TEST(OpenAiCompletionsTest, ImpossibleLogprobsStayNumbers) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"prompt": "hi", "logprobs": 0})", context);
  Chunk chunk = MakeLastChunk("a");
  chunk.tokens[0].logprob = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Whole(&request, {chunk})["choices"][0]["logprobs"]["token_logprobs"][0], -9999.0);
}

TEST(OpenAiCompletionsTest, BestOfGivesTheAnswersWhoseTokensAreLikeliest) {
  const TestContext context;
  const Json body = {{"prompt", {"x", "y"}}, {"n", 2}, {"best_of", 3}};
  Result<ParsedRequest> request = ParseTextCompletion(body, "", context.api);
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request->more.size(), 5u);
  EXPECT_EQ(request->generation.top_logprobs, 0) << "the log probability of each token is needed";
  const std::pair<const char*, float> answers[] = {{"worst", -2}, {"best", -0.1f}, {"middle", -1},
                                                   {"better", 0}, {"bad", -3},     {"good", -0.5f}};
  for (int i = 0; i < 6; ++i) {
    Chunk chunk = MakeLastChunk(answers[i].first);
    for (GeneratedToken& token : chunk.tokens) token.logprob = answers[i].second;
    chunk.choice = i;
    request->writer->Append(chunk);
  }
  const Json answer = request->writer->Whole();
  std::vector<std::string> texts;
  for (const Json& choice : answer["choices"]) {
    EXPECT_EQ(choice["index"], texts.size());
    EXPECT_EQ(choice["logprobs"], nullptr);
    texts.push_back(choice["text"]);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"best", "middle", "better", "good"}));
  EXPECT_EQ(answer["usage"]["completion_tokens"], 6 * 5) << "all that was generated";
}

TEST(OpenAiCompletionsTest, BadInputIsRefusedByName) {
  ExpectRefused(&ParseTextCompletion, {{R"([])", ""},
                                       {R"({})", "prompt"},
                                       {R"({"prompt": null})", "prompt"},
                                       {R"({"prompt": 5})", "prompt"},
                                       {R"({"prompt": {}})", "prompt.prompt_string"},
                                       {R"({"prompt": []})", "prompt"},
                                       {R"({"prompt": ["a", []]})", "prompt"},
                                       {R"({"prompt": [[1], [258]]})", "prompt"},
                                       {R"({"prompt": "x", "n": 65})", "n"},
                                       {R"({"prompt": ["x", "y"], "n": 33})", "prompt"},
                                       {R"({"prompt": "x", "n": 3, "best_of": 2})", "best_of"},
                                       {R"({"prompt": [258]})", "prompt"},
                                       {R"({"prompt": [-1]})", "prompt"},
                                       {R"({"prompt": [1.5]})", "prompt"},
                                       {R"({"prompt": [18446744073709551615]})", "prompt"},
                                       {R"({"prompt": [null]})", "prompt"},
                                       {R"({"prompt": ")" + std::string(5000, 'x') + R"("})", "prompt"},
                                       {R"({"prompt": "x", "echo": true})", "echo"},
                                       {R"({"prompt": "x", "best_of": 2, "stream": true})", "best_of"},
                                       {R"({"prompt": "x", "suffix": "y"})", "suffix"},
                                       {R"({"prompt": "x", "logprobs": 21})", "logprobs"},
                                       {R"({"prompt": "x", "logprobs": true})", "logprobs"},
                                       {R"({"prompt": "x", "max_tokens": "many"})", "max_tokens"},
                                       {R"({"prompt": "x", "json_schema": {"type": "wizard"}})", "json_schema"}});
}

}  // namespace
}  // namespace outrider
