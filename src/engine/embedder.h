// Embedder: turns a text into a vector, or into one for each token; or ranks a text. Thread-safe; calls are executed
// one after the other, in the order in which they came.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace outrider {

enum class EmbeddingKind {
  kText,    // one vector for a text
  kTokens,  // one for each token
  kRank,    // how well the second text of a pair answers the first
};

class Embedder {
 public:
  virtual ~Embedder() = default;

  virtual EmbeddingKind kind() const { return EmbeddingKind::kText; }

  virtual int max_tokens() const = 0;

  // kText: the pooled embedding of `tokens`, of Euclidean length 1. kRank: a vector whose first number is the score.
  virtual Result<std::vector<float>> Embed(std::span<const Token> tokens) = 0;

  // kTokens: the embedding of each token, as the model has it.
  virtual Result<std::vector<std::vector<float>>> EmbedEach(std::span<const Token>) {
    return Unsupported("start the server with --pooling none for an embedding of each token");
  }
};

}  // namespace outrider
