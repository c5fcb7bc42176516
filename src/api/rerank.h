// POST /rerank: how well documents answer a query, by a model that was trained to say so.
#pragma once

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/embedder.h"

namespace outrider {

// "query" and "documents" (Jina's shape of the answer) or "texts" (that of Text Embeddings Inference), "top_n". The
// best documents come first. `embedder` ranks (EmbeddingKind::kRank).
Result<Json> RerankJson(const Json& body, const ApiContext& context, Embedder& embedder);

}  // namespace outrider
