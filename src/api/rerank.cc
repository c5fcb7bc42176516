// POST /rerank.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/embeddings.h"
#include "api/fields.h"
#include "api/turn_input.h"

namespace outrider {
namespace {

constexpr size_t kMaxDocuments = 2048;

struct RankedDocument {
  size_t index;
  float score;
};

struct RankingAnswer {
  bool tei = false;  // in the shape of Text Embeddings Inference
  int top_n = std::numeric_limits<int>::max();
  bool return_text = false;
  std::string model = {};
  size_t total_tokens = 0;
  std::vector<std::string> documents = {};

  Json Make(const std::vector<InputVectors>& scores) const {
    std::vector<RankedDocument> ranked;
    for (const InputVectors& score : scores) ranked.push_back({ranked.size(), score.at(0).at(0)});
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const RankedDocument& a, const RankedDocument& b) { return a.score > b.score; });
    ranked.resize(std::min(ranked.size(), static_cast<size_t>(top_n)));

    Json results = Json::array();
    for (const RankedDocument& document : ranked) {
      results.push_back({{"index", document.index}, {tei ? "score" : "relevance_score", document.score}});
      if (tei && return_text) results.back()["text"] = documents[document.index];
    }
    if (tei) return results;
    return Json{{"model", model},
                {"object", "list"},
                {"usage", {{"prompt_tokens", total_tokens}, {"total_tokens", total_tokens}}},
                {"results", std::move(results)}};
  }
};

std::string Replace(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

std::vector<Token> RankPrompt(const std::string& query, const std::string& document, const ApiContext& context) {
  const auto tokens = [&](const std::string& text, SpecialTokens special) {
    return context.tokenizer.Tokenize(text, /*add_bos=*/false, special);
  };
  if (context.rank_template.empty()) {
    return context.tokenizer.JoinForRanking(tokens(query, SpecialTokens::kAsText),
                                            tokens(document, SpecialTokens::kAsText));
  }
  // The document last: a query with "{document}" in it must not get the document twice.
  const size_t at = context.rank_template.find("{document}");
  if (at == std::string::npos) return tokens(Replace(context.rank_template, "{query}", query), SpecialTokens::kParse);
  return tokens(Replace(context.rank_template.substr(0, at), "{query}", query) + document +
                    Replace(context.rank_template.substr(at + std::string("{document}").size()), "{query}", query),
                SpecialTokens::kParse);
}

Status ReadDocuments(const Json& list, const char* name, std::vector<std::string>* documents) {
  if (!list.is_array() || list.empty()) return InvalidArgument("must be a list of texts that is not empty", name);
  if (list.size() > kMaxDocuments) return InvalidArgument(fmt::format("has more than {} items", kMaxDocuments), name);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_string()) return InvalidArgument("must be a string", ElementField(name, i));
    documents->push_back(list[i].get<std::string>());
  }
  return {};
}

}  // namespace

Result<EmbeddingRequest> ParseRerank(const Json& body, const ApiContext& context, const Embedder& embedder) {
  if (embedder.kind() != EmbeddingKind::kRank) {
    return Unsupported("start the server with --reranking, and a model that ranks documents, to rank them");
  }
  FieldReader fields(body);
  const char* name = fields.Has("texts") ? "texts" : "documents";
  RankingAnswer answer{.tei = fields.Has("texts")};
  std::string query;
  std::vector<std::string> documents;
  if (!fields.Has("query")) fields.Fail("query", "is required");
  fields.String("query", &query);
  fields.Int("top_n", 0, std::numeric_limits<int>::max(), &answer.top_n);
  fields.Bool("return_text", &answer.return_text);
  Status status = fields.status();
  if (status.ok()) status = ReadDocuments(fields.At(name), name, &documents);
  if (!status.ok()) return status;

  EmbeddingRequest request;
  const auto max_tokens = static_cast<size_t>(embedder.max_tokens());
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto too_long = [&](size_t tokens) {
      return InvalidArgument(
          fmt::format("is too large: with the query it has at least {} tokens, and {} fit", tokens, max_tokens),
          ElementField(name, i));
    };
    const size_t fewest = context.tokenizer.FewestTokens(query.size() + documents[i].size());
    if (fewest > max_tokens) return too_long(fewest);
    const std::vector<Token>& prompt = request.inputs.emplace_back(RankPrompt(query, documents[i], context));
    if (prompt.empty()) return InvalidArgument("is empty", ElementField(name, i));
    if (prompt.size() > max_tokens) return too_long(prompt.size());
  }
  answer.model = context.model_name;
  answer.total_tokens = request.TokenCount();
  answer.documents = std::move(documents);
  request.answer = [answer = std::move(answer)](const std::vector<InputVectors>& scores) -> Result<Json> {
    return answer.Make(scores);
  };
  return request;
}

}  // namespace outrider
