#include "http/json_routes.h"

#include "api/embeddings.h"
#include "api/input_tokens.h"
#include "api/rerank.h"

namespace outrider {

std::vector<JsonRoute> JsonRoutes(const Services& services) {
  const ApiContext& api = services.api;
  std::vector<JsonRoute> routes;
  const auto add = [&routes](std::initializer_list<const char*> paths, auto answer) {
    for (const char* path : paths) routes.push_back({path, answer});
  };
  add({"/tokenize"}, [&api](const Json& body) { return TokenizeJson(body, api); });
  add({"/detokenize"}, [&api](const Json& body) { return DetokenizeJson(body, api); });
  add({"/apply-template"}, [&api](const Json& body) { return ApplyTemplateJson(body, api); });
  add({"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"},
      [&api](const Json& body) { return ChatInputTokens(body, api); });
  add({"/v1/responses/input_tokens", "/responses/input_tokens"},
      [&api](const Json& body) { return ResponseInputTokens(body, api); });
  add({"/v1/messages/count_tokens"}, [&api](const Json& body) { return MessageInputTokens(body, api); });

  add({"/v1/embeddings"}, [&services](const Json& body) -> Result<Json> {
    if (services.embedder == nullptr) return Unsupported("start the server with --embeddings to get embeddings");
    return EmbeddingsJson(body, services.api, *services.embedder);
  });
  add({"/embeddings", "/embedding"}, [&services](const Json& body) -> Result<Json> {
    if (services.embedder == nullptr) return Unsupported("start the server with --embeddings to get embeddings");
    return LlamaEmbeddingsJson(body, services.api, *services.embedder);
  });
  add({"/v1/rerank", "/v1/reranking", "/rerank", "/reranking"}, [&services](const Json& body) -> Result<Json> {
    if (services.embedder == nullptr || services.embedder->kind() != EmbeddingKind::kRank)
      return Unsupported("start the server with --reranking, and a model that ranks documents, to rank them");
    return RerankJson(body, services.api, *services.embedder);
  });
  return routes;
}

}  // namespace outrider
