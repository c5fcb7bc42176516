// What the endpoints for embeddings have in common beside EmbeddingsJson (info.h): reading their inputs, and
// llama.cpp's shape of the answer.
#pragma once

#include <string>
#include <vector>

#include "api/info.h"
#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/embedder.h"

namespace outrider {

inline constexpr const char* kOnlyRanks = "this server ranks (--reranking); start another one for embeddings";

// A text, its tokens, a mix of both, or a list of such. `name` is the field; errors name the element.
Result<std::vector<std::vector<Token>>> ReadEmbeddingInputs(const Json& input, const std::string& name,
                                                            const ApiContext& context, const Embedder& embedder);

// POST /embeddings and /embedding: a list of {"index", "embedding": [vector, …]}, one vector for a text, or one for
// each of its tokens (--pooling none).
Result<Json> LlamaEmbeddingsJson(const Json& body, const ApiContext& context, Embedder& embedder);

}  // namespace outrider
