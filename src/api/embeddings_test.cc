#include <gtest/gtest.h>

#include "api/info.h"
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
    return std::vector<float>{static_cast<float>(tokens.size()), static_cast<float>(tokens[0]) / 2};
  }

  int calls = 0;
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

  Result<Json> Answer(const Json& body) {
    const auto request = ReadEmbeddingRequest(body, context, embedder);
    if (!request.ok()) return request.status();
    return EmbeddingsJson(*request, context, embedder, before_each);
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
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ""})")), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": []})")), "input");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ["a", ""]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": ["a", 5]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": [[1], []]})")), "input[1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": [[1], [2, 258]]})")), "input[1][1]");
  EXPECT_EQ(WrongField(Json::parse(R"({"input": [1, "a"]})")), "input[1]");
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
  EXPECT_EQ(WrongField({{"input", "a"}, {"dimensions", 2}}), "dimensions");
  EXPECT_EQ(WrongField({{"input", "a"}, {"encoding_format", "hex"}}), "encoding_format");
  EXPECT_EQ(WrongField({{"input", "a"}, {"encoding_format", 1}}), "encoding_format");
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
