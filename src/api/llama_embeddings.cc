// POST /embeddings and /embedding, as llama.cpp has them. A body with OpenAI's "encoding_format" or "dimensions" gets
// the same vectors, as numbers of the model's own size.
#include "api/embeddings.h"
#include "api/fields.h"

namespace outrider {

Result<Json> LlamaEmbeddingsJson(const Json& body, const ApiContext& context, Embedder& embedder) {
  const FieldReader fields(body);
  if (!fields.status().ok()) return fields.status();
  if (embedder.kind() == EmbeddingKind::kRank) return Unsupported(kOnlyRanks);
  const char* name = fields.Has("input") ? "input" : "content";
  const Result<std::vector<std::vector<Token>>> inputs = ReadEmbeddingInputs(fields.At(name), name, context, embedder);
  if (!inputs.ok()) return inputs.status();

  Json answer = Json::array();
  for (const std::vector<Token>& tokens : *inputs) {
    Json vectors = Json::array();
    if (embedder.kind() == EmbeddingKind::kTokens) {
      Result<std::vector<std::vector<float>>> each = embedder.EmbedEach(tokens);
      if (!each.ok()) return each.status();
      for (std::vector<float>& vector : *each) vectors.push_back(std::move(vector));
    } else {
      Result<std::vector<float>> vector = embedder.Embed(tokens);
      if (!vector.ok()) return vector.status();
      vectors.push_back(std::move(*vector));
    }
    answer.push_back({{"index", answer.size()}, {"embedding", std::move(vectors)}});
  }
  return answer;
}

}  // namespace outrider
