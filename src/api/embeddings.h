// What an endpoint that computes with the embedder is to the server: a way to read a request, and a way to make the
// answer of the vectors. Each endpoint is one parse function; what takes long is AnswerEmbeddings, the same for all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/embedder.h"

namespace outrider {

// The vector of an input, or those of its tokens (EmbeddingKind::kTokens).
using InputVectors = std::vector<std::vector<float>>;

// A request that has been read and checked. `answer` makes the body of the response of the vectors of each input.
struct EmbeddingRequest {
  std::vector<std::vector<Token>> inputs;
  std::function<Result<Json>(std::vector<InputVectors>)> answer;

  size_t TokenCount() const;
};

using ParseEmbeddingRequest = Result<EmbeddingRequest> (*)(const Json& body, const ApiContext& context,
                                                           const Embedder& embedder);

// POST /v1/embeddings, as OpenAI has it.
Result<EmbeddingRequest> ParseEmbeddings(const Json& body, const ApiContext& context, const Embedder& embedder);

// POST /embeddings and /embedding, as llama.cpp has them: a list of {"index", "embedding": [vector, …]}, one vector for
// a text, or one for each of its tokens (--pooling none).
Result<EmbeddingRequest> ParseLlamaEmbeddings(const Json& body, const ApiContext& context, const Embedder& embedder);

// POST /rerank: how well documents answer a query. "query" and "documents" (Jina's shape of the answer) or "texts"
// (that of Text Embeddings Inference), "top_n". The best documents come first.
Result<EmbeddingRequest> ParseRerank(const Json& body, const ApiContext& context, const Embedder& embedder);

// Computes one input after the other. `before_each` is called with the number of tokens of each input before that is
// computed; an error ends the request.
Result<Json> AnswerEmbeddings(const EmbeddingRequest& request, Embedder& embedder,
                              const std::function<Status(size_t)>& before_each);

// A text, its tokens, a mix of both, or a list of such. `name` is the field; errors name the element.
Result<std::vector<std::vector<Token>>> ReadEmbeddingInputs(const Json& input, const std::string& name,
                                                            const ApiContext& context, const Embedder& embedder);

// kUnsupported if this embedder only ranks.
Status CheckEmbeds(const Embedder& embedder);

}  // namespace outrider
