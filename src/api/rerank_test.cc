#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "api/embeddings.h"

namespace outrider {
namespace {

// The score is the number of tokens.
class LengthRanker : public Embedder {
 public:
  EmbeddingKind kind() const override { return EmbeddingKind::kRank; }
  int max_tokens() const override { return 30; }
  Result<std::vector<float>> Embed(std::span<const Token> tokens) override {
    seen.emplace_back();
    for (const Token token : tokens) seen.back() += static_cast<char>(token);
    return std::vector<float>{static_cast<float>(tokens.size()), 99};
  }

  std::vector<std::string> seen;
};

struct RerankTest : testing::Test {
  TestContext context;
  LengthRanker ranker;

  Result<Json> Answer(const Json& body) {
    const auto request = ParseRerank(body, context.api, ranker);
    if (!request.ok()) return request.status();
    return AnswerEmbeddings(*request, ranker, [](size_t) { return Status(); });
  }
  Json Ok(const std::string& body) {
    const Result<Json> answer = Answer(Json::parse(body));
    EXPECT_TRUE(answer.ok()) << answer.status().field() << ": " << answer.status().message();
    return answer.ok() ? *answer : Json();
  }
};

TEST_F(RerankTest, TheBestComeFirst) {
  EXPECT_EQ(Ok(R"({"query": "q", "documents": ["a", "ccc", "bb"]})"), Json::parse(R"({
    "model": "test-model", "object": "list", "usage": {"prompt_tokens": 9, "total_tokens": 9},
    "results": [{"index": 1, "relevance_score": 4.0}, {"index": 2, "relevance_score": 3.0},
                {"index": 0, "relevance_score": 2.0}]})"));
  EXPECT_EQ(ranker.seen, (std::vector<std::string>{"qa", "qccc", "qbb"}));
}

TEST_F(RerankTest, TheShapeOfTextEmbeddingsInference) {
  EXPECT_EQ(Ok(R"({"query": "q", "texts": ["a", "ccc"], "return_text": true})"),
            Json::parse(R"([{"index": 1, "score": 4.0, "text": "ccc"}, {"index": 0, "score": 2.0, "text": "a"}])"));
  EXPECT_EQ(Ok(R"({"query": "q", "texts": ["a", "ccc"], "top_n": 1})").size(), 1u);
  EXPECT_EQ(Ok(R"({"query": "q", "documents": ["a", "ccc"], "top_n": 99})")["results"].size(), 2u);
}

TEST_F(RerankTest, TheModelsTemplateIsFilledIn) {
  context.api.rank_template = "Q:{query} D:{document}!";
  Ok(R"({"query": "{document}", "documents": ["{query}"]})");
  EXPECT_EQ(ranker.seen[0], "Q:{document} D:{query}!") << "what is filled in is not filled in again";
}

TEST_F(RerankTest, WrongInputIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"documents": ["a"]})", "query"},
      {R"({"query": 5, "documents": ["a"]})", "query"},
      {R"({"query": "q"})", "documents"},
      {R"({"query": "q", "documents": []})", "documents"},
      {R"({"query": "q", "documents": 123})", "documents"},
      {R"({"query": "q", "documents": ["a", 2]})", "documents[1]"},
      {R"({"query": "q", "texts": ["a", "012345678901234567890123456789"]})", "texts[1]"},
      {R"({"query": "q", "documents": ["a"], "top_n": -1})", "top_n"},
  };
  for (const auto& [body, field] : cases) {
    EXPECT_EQ(Answer(Json::parse(body)).status().field(), field) << body;
  }
  EXPECT_TRUE(ranker.seen.empty()) << "ranked something before all was checked";
  EXPECT_FALSE(Answer(Json::array()).ok());
}

}  // namespace
}  // namespace outrider
