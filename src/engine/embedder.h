// Embedder: turns a text into one vector. Thread-safe; calls are executed one after the other, in the order in which
// they came.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"

namespace outrider {

class Embedder {
 public:
  virtual ~Embedder() = default;

  virtual int max_tokens() const = 0;

  // The pooled embedding of `tokens`, of Euclidean length 1.
  virtual Result<std::vector<float>> Embed(std::span<const Token> tokens) = 0;
};

}  // namespace outrider
