// POST /embeddings and /embedding, as llama.cpp has them. A body with OpenAI's "encoding_format" or "dimensions" gets
// the same vectors, as numbers of the model's own size.
#include "api/embeddings.h"
#include "api/fields.h"

namespace outrider {

Result<EmbeddingRequest> ParseLlamaEmbeddings(const Json& body, const ApiContext& context, const Embedder& embedder) {
  const FieldReader fields(body);
  if (!fields.status().ok()) return fields.status();
  if (Status status = CheckEmbeds(embedder); !status.ok()) return status;
  const char* name = fields.Has("input") ? "input" : "content";
  auto inputs = ReadEmbeddingInputs(fields.At(name), name, context, embedder);
  if (!inputs.ok()) return inputs.status();
  return EmbeddingRequest{std::move(*inputs), [](std::vector<InputVectors> vectors) -> Result<Json> {
                            Json answer = Json::array();
                            for (const InputVectors& input : vectors) {
                              answer.push_back({{"index", answer.size()}, {"embedding", input}});
                            }
                            return answer;
                          }};
}

}  // namespace outrider
