#include "api/choices.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"

namespace outrider {
namespace {

ParsedRequest Parse(ParseRequest parse, const std::string& body, const TestContext& context) {
  Result<ParsedRequest> request = parse(Json::parse(body), "owner", context.api);
  EXPECT_TRUE(request.ok()) << request.status().field() << ": " << request.status().message();
  return std::move(*request);
}

Chunk Of(int choice, Chunk chunk) {
  chunk.choice = choice;
  return chunk;
}

constexpr const char* kThree = R"({"messages": [{"role": "user", "content": "hi"}], "n": 3, "seed": 7)";

TEST(ChoicesTest, AnswersAreThoseOfNSeeds) {
  const TestContext context;
  const ParsedRequest request = Parse(&ParseChatCompletion, kThree + std::string("}"), context);
  EXPECT_EQ(request.generation.sampling.seed, 7u) << "the first is the one that a request without n gets";
  ASSERT_EQ(request.more.size(), 2u);
  EXPECT_EQ(request.more[0].sampling.seed, 8u);
  EXPECT_EQ(request.more[1].sampling.seed, 9u);
  for (const GenerationRequest& other : request.more) {
    EXPECT_EQ(other.prompt, request.generation.prompt);
    EXPECT_EQ(other.owner, "owner");
    EXPECT_EQ(other.family, request.generation.family);
  }
  EXPECT_NE(request.generation.family, 0u);
  EXPECT_EQ(Parse(&ParseChatCompletion, R"({"messages": [{"role": "user", "content": "hi"}]})", context).more.size(),
            0u);
}

TEST(ChoicesTest, WholeAnswerHasAllChoicesInOrder) {
  const TestContext context;
  ParsedRequest request = Parse(&ParseChatCompletion, kThree + std::string("}"), context);
  const Json answer = Whole(&request, {Of(2, MakeLastChunk("c")), Of(0, MakeChunk("a")), Of(1, MakeLastChunk("b")),
                                       Of(0, MakeLastChunk("a"))});
  ASSERT_EQ(answer["choices"].size(), 3u);
  const char* texts[] = {"aa", "b", "c"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["message"]["content"], texts[i]);
  }
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 10) << "the prompt counts once";
  EXPECT_EQ(answer["usage"]["completion_tokens"], 15);
}

TEST(ChoicesTest, AStreamHasOneEnd) {
  const TestContext context;
  ParsedRequest request =
      Parse(&ParseChatCompletion,
            kThree + std::string(R"(, "stream": true, "stream_options": {"include_usage": true}})"), context);
  const std::vector<Json> events = Stream(&request, {Of(1, MakeLastChunk("b")), Of(0, MakeChunk("a")),
                                                     Of(2, MakeLastChunk("c")), Of(0, MakeLastChunk("a"))});
  std::string texts[3];
  int ends = 0;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    const Json& choice = events[i]["choices"][0];
    EXPECT_EQ(events[i]["id"], events[0]["id"]) << "all are one answer";
    if (choice["delta"].contains("content") && choice["delta"]["content"].is_string()) {
      texts[choice["index"].get<size_t>()] += choice["delta"]["content"].get<std::string>();
    }
    if (!choice["finish_reason"].is_null()) ++ends;
  }
  EXPECT_EQ(texts[0] + "," + texts[1] + "," + texts[2], "aa,b,c");
  EXPECT_EQ(ends, 3);
  const Json& usage = events[events.size() - 2];
  EXPECT_EQ(usage["choices"], Json::array());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 15);
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(ChoicesTest, SeveralPromptsHaveTheAnswersThatEachHasAlone) {
  const TestContext context;
  ParsedRequest request =
      Parse(&ParseTextCompletion, R"({"prompt": ["a", [98, 99]], "n": 2, "best_of": 2, "seed": 5})", context);
  ASSERT_EQ(request.more.size(), 3u);
  EXPECT_EQ(request.generation.prompt, (std::vector<Token>{256, 'a'}));
  EXPECT_EQ(request.more[0].prompt, request.generation.prompt);
  EXPECT_EQ(request.more[1].prompt, (std::vector<Token>{98, 99}));
  EXPECT_EQ(request.more[1].sampling.seed, 5u);
  EXPECT_EQ(request.more[2].sampling.seed, 6u);
  EXPECT_NE(request.more[1].family, request.generation.family);
  const Json answer = Whole(&request, {Of(0, MakeLastChunk("a")), Of(1, MakeLastChunk("b")), Of(2, MakeLastChunk("c")),
                                       Of(3, MakeLastChunk("d"))});
  ASSERT_EQ(answer["choices"].size(), 4u);
  EXPECT_EQ(answer["choices"][3]["index"], 3);
  EXPECT_EQ(answer["choices"][3]["text"], "d");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 20) << "each prompt counts once";
}

TEST(ChoicesTest, LlamasCompletionsAreAList) {
  const TestContext context;
  ParsedRequest request = Parse(&ParseLlamaCompletion, R"({"prompt": ["a", {"prompt_string": "b"}]})", context);
  const Json answer = Whole(&request, {Of(0, MakeLastChunk("x")), Of(1, MakeLastChunk("y"))});
  ASSERT_TRUE(answer.is_array());
  EXPECT_EQ(answer[1]["index"], 1);
  EXPECT_EQ(answer[1]["content"], "y");
  EXPECT_EQ(answer[1]["prompt"], "<bos>b");
  ParsedRequest streamed = Parse(&ParseLlamaCompletion, R"({"prompt": "a", "n_cmpl": 2, "stream": true})", context);
  const std::vector<Json> events = Stream(&streamed, {Of(1, MakeLastChunk("y")), Of(0, MakeLastChunk("x"))});
  EXPECT_EQ(events[0]["index"], 1);
  EXPECT_EQ(events.back()["index"], 0);
  EXPECT_EQ(events.back()["stop"], true);
}

TEST(ChoicesTest, VerboseShowsThePromptAndTheSettings) {
  const TestContext context;
  const std::string body = R"({"messages": [{"role": "user", "content": "hi"}], "verbose": )";
  ParsedRequest with = Parse(&ParseChatCompletion, body + "true}", context);
  const Json answer = Whole(&with, {MakeLastChunk("x")});
  EXPECT_NE(answer["__verbose"]["prompt"].get<std::string>().find("hi"), std::string::npos);
  EXPECT_EQ(answer["__verbose"]["content"], "x");
  ParsedRequest without = Parse(&ParseChatCompletion, body + "false}", context);
  EXPECT_FALSE(Whole(&without, {MakeLastChunk("x")}).contains("__verbose"));
}

TEST(ChoicesTest, EndpointsWithoutChoicesSaySo) {
  ExpectRefused(&ParseMessages,
                {{R"({"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}], "n": 2})", "n"}});
  ExpectRefused(&ParseResponse, {{R"({"input": "hi", "n": 2})", "n"}});
}

}  // namespace
}  // namespace outrider
