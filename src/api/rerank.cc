#include "api/rerank.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/fields.h"
#include "api/turn_input.h"

namespace outrider {
namespace {

constexpr size_t kMaxDocuments = 2048;

struct RankedDocument {
  size_t index;
  float score;
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

Result<Json> RerankJson(const Json& body, const ApiContext& context, Embedder& embedder) {
  FieldReader fields(body);
  const char* name = fields.Has("texts") ? "texts" : "documents";
  const bool tei = fields.Has("texts");
  std::string query;
  int top_n = std::numeric_limits<int>::max();
  bool return_text = false;
  std::vector<std::string> documents;
  if (!fields.Has("query")) fields.Fail("query", "is required");
  fields.String("query", &query);
  fields.Int("top_n", 0, std::numeric_limits<int>::max(), &top_n);
  fields.Bool("return_text", &return_text);
  Status status = fields.status();
  if (status.ok()) status = ReadDocuments(fields.At(name), name, &documents);
  if (!status.ok()) return status;

  std::vector<std::vector<Token>> prompts;
  size_t total_tokens = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    prompts.push_back(RankPrompt(query, documents[i], context));
    total_tokens += prompts.back().size();
    if (prompts.back().empty()) return InvalidArgument("is empty", ElementField(name, i));
    if (prompts.back().size() > static_cast<size_t>(embedder.max_tokens())) {
      return InvalidArgument(fmt::format("is too large: with the query it has {} tokens, and {} fit",
                                         prompts.back().size(), embedder.max_tokens()),
                             ElementField(name, i));
    }
  }
  std::vector<RankedDocument> ranked;
  for (const std::vector<Token>& prompt : prompts) {
    const Result<std::vector<float>> scores = embedder.Embed(prompt);
    if (!scores.ok()) return scores.status();
    ranked.push_back({ranked.size(), scores->at(0)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedDocument& a, const RankedDocument& b) { return a.score > b.score; });
  ranked.resize(std::min(ranked.size(), static_cast<size_t>(top_n)));

  Json results = Json::array();
  for (const RankedDocument& document : ranked) {
    results.push_back({{"index", document.index}, {tei ? "score" : "relevance_score", document.score}});
    if (tei && return_text) results.back()["text"] = documents[document.index];
  }
  if (tei) return results;
  return Json{{"model", context.model_name},
              {"object", "list"},
              {"usage", {{"prompt_tokens", total_tokens}, {"total_tokens", total_tokens}}},
              {"results", std::move(results)}};
}

}  // namespace outrider
