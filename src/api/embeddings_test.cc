#include "api/embeddings.h"

#include <gtest/gtest.h>

#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

// The embedding is the number of tokens and the first of them.
class CountingEmbedder : public Embedder {
 public:
  int max_tokens() const override { return 8; }
  Result<std::vector<float>> Embed(std::span<const Token> tokens) override {
    ++calls;
    if (fails) return Internal("no memory");
    std::vector<float> vector{static_cast<float>(tokens.size()), static_cast<float>(tokens[0]) / 2};
    vector.resize(width);
    return vector;
  }

  EmbeddingKind kind() const override { return for_tokens ? EmbeddingKind::kTokens : EmbeddingKind::kText; }
  Result<std::vector<std::vector<float>>> EmbedEach(std::span<const Token> tokens) override {
    std::vector<std::vector<float>> vectors;
    for (const Token token : tokens) vectors.push_back({static_cast<float>(token)});
    return vectors;
  }

  bool for_tokens = false;
  int calls = 0;
  size_t width = 2;
  bool fails = false;
};

struct EmbeddingsTest : testing::Test {
  FakeTokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat = std::move(*ChatTemplate::Create("", "", ""));
  CountingEmbedder embedder;
  std::function<Status(size_t)> before_each = [](size_t) { return Status(); };
  ApiContext context{.tokenizer = tokenizer,
                     .chat = *chat,
                     .model_name = "tiny",
                     .start_time = 0,
                     .sequence_length = 512,
                     .n_slots = 1,
                     .sampling = {},
                     .max_tokens = -1};

  Result<Json> Answer(const Json& body, ParseEmbeddingRequest parse = ParseEmbeddings) {
    const auto request = parse(body, context, embedder);
    if (!request.ok()) return request.status();
    return AnswerEmbeddings(*request, embedder, before_each);
  }
  Json Ok(const Json& body) {
    Result<Json> answer = Answer(body);
    EXPECT_TRUE(answer.ok()) << answer.status().field() << ": " << answer.status().message();
    return answer.ok() ? *answer : Json();
  }
  std::string WrongField(const Json& body) {
    const Result<Json> answer = Answer(body);
    EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument) << body;
    EXPECT_EQ(embedder.calls, 0) << "embedded something before all was checked";
    return answer.status().field();
  }
};

TEST_F(EmbeddingsTest, OneText) {
  EXPECT_EQ(Ok({{"input", "abc"}}), Json::parse(R"({
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [4.0, 128.0]}],
    "model": "tiny",
    "usage": {"prompt_tokens": 4, "total_tokens": 4}
  })"));
}

TEST_F(EmbeddingsTest, AllShapesOfInput) {
  const Json texts = Ok({{"input", {"a", "bc"}}});
  EXPECT_EQ(texts["data"].size(), 2u);
  EXPECT_EQ(texts["data"][1]["index"], 1);
  EXPECT_EQ(texts["data"][1]["embedding"][0], 3);
  EXPECT_EQ(texts["usage"]["total_tokens"], 5);

  const Json tokens = Ok({{"input", {7, 8}}});
  EXPECT_EQ(tokens["data"].size(), 1u);
  EXPECT_EQ(tokens["data"][0]["embedding"], Json::parse("[2.0, 3.5]"));

  const Json lists = Ok(Json::parse(R"({"input": [[2], [4, 6]]})"));
  EXPECT_EQ(lists["data"].size(), 2u);
  EXPECT_EQ(lists["data"][1]["embedding"], Json::parse("[2.0, 2.0]"));
}

TEST_F(EmbeddingsTest, TextsAndTokensMayBeMixed) {
  const Json one = Ok(Json::parse(R"({"input": [7, "ab", 8]})"));
  ASSERT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["embedding"][0], 4) << "7, a, b, 8: only a text that comes first has a token before it";
  EXPECT_EQ(Ok(Json::parse(R"({"input": [[7, "ab"], "ab"]})"))["data"].size(), 2u);
  EXPECT_EQ(Ok({{"input", ""}})["usage"]["total_tokens"], 1) << "the token that begins a text";
}

TEST_F(EmbeddingsTest, FewerDimensionsAreTheBeginningMadeALengthOfOne) {
  const Json whole = Ok({{"input", {6, 8}}})["data"][0]["embedding"];
  EXPECT_EQ(whole, Json::parse("[2.0, 3.0]"));
  EXPECT_EQ(Ok({{"input", {6, 8}}, {"dimensions", 1}})["data"][0]["embedding"], Json::parse("[1.0]"));
  EXPECT_EQ(Answer({{"input", {6, 8}}, {"dimensions", 3}}).status().field(), "dimensions");
}

TEST_F(EmbeddingsTest, LlamasShapes) {
  const auto ask = [&](const char* body) { return Answer(Json::parse(body), ParseLlamaEmbeddings); };
  const Json expected = Json::parse(R"([{"index": 0, "embedding": [[4.0, 128.0]]}])");
  EXPECT_EQ(*ask(R"({"content": "abc"})"), expected);
  EXPECT_EQ(*ask(R"({"input": "abc"})"), expected);
  EXPECT_EQ(ask(R"({"content": ["a", "b"]})")->size(), 2u);
  EXPECT_EQ(ask(R"({})").status().field(), "content");
  EXPECT_EQ(ask(R"({"content": 5})").status().field(), "content");
  EXPECT_EQ(ask(R"([])").status().code(), StatusCode::kInvalidArgument);

  embedder.for_tokens = true;
  EXPECT_EQ(*ask(R"({"input": "ab"})"), Json::parse(R"([{"index": 0, "embedding": [[256.0], [97.0], [98.0]]}])"));
  EXPECT_EQ(Answer({{"input", "ab"}}).status().code(), StatusCode::kInvalidArgument)
      << "OpenAI's shape has one vector for a text";
}

TEST_F(EmbeddingsTest, Base64IsLittleEndianFloats) {
  // 4.0f is 00 00 80 40, 128.0f is 00 00 00 43.
  const Json answer = Ok({{"input", "abc"}, {"encoding_format", "base64"}});
  EXPECT_EQ(answer["data"][0]["embedding"], "AACAQAAAAEM=");
}

TEST_F(EmbeddingsTest, WrongInputIsNamed) {
  EXPECT_EQ(WrongField(Json::array()), "");
  EXPECT_EQ(WrongField(Json::object()), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": null})")), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": 5})")), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": []})")), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ["a", null]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ["a", 500]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": [[1], []]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": [[1], [2, 258]]})")), "input[1][1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": {"text": "a"}})")), "input");
}

TEST_F(EmbeddingsTest, LimitsLengthAndNumber) {
  Ok({{"input", "1234567"}});
  embedder.calls = 0;
  EXPECT_EQ(WrongField({{"input", "12345678"}}), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ["a", "12345678"]})")), "input[1]");
  EXPECT_EQ(WrongField({{"input", std::vector<std::string>(2049, "a")}}), "input");
  EXPECT_EQ(Ok({{"input", std::vector<std::string>(2048, "a")}})["data"].size(), 2048u);
}

TEST_F(EmbeddingsTest, WrongOptionsAreNamed) {
  EXPECT_EQ(WrongField({{"input", "a"}, {"dimensions", 0}}), "dimensions");
  EXPECT_EQ(WrongField({{"input", "a"}, {"encoding_format", "hex"}}), "encoding_format");
  EXPECT_EQ(WrongField({{"input", "a"}, {"encoding_format", 1}}), "encoding_format");
}

TEST_F(EmbeddingsTest, AnAnswerThatIsTooLargeIsRefused) {
  embedder.width = (1 << 23) / 2;
  EXPECT_TRUE(Answer({{"input", {"a", "b"}}, {"encoding_format", "base64"}}).ok());
  EXPECT_EQ(Answer({{"input", {"a", "b", "c"}}, {"encoding_format", "base64"}}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(EmbeddingsTest, EngineErrorsPass) {
  embedder.fails = true;
  EXPECT_EQ(Answer({{"input", "a"}}).status().code(), StatusCode::kInternal);
}

TEST_F(EmbeddingsTest, IsAskedBeforeEachInputWhetherToGoOn) {
  std::vector<size_t> asked;
  before_each = [&](size_t tokens) {
    asked.push_back(tokens);
    return asked.size() < 3 ? Status() : Unavailable("the client went away");
  };
  const auto answer = Answer({{"input", {"a", "bc", "d", "e"}}});
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(asked, (std::vector<size_t>{2, 3, 2}));
  EXPECT_EQ(embedder.calls, 2);
}

}  // namespace
}  // namespace outrider
