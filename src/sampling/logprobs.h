// Log probabilities under the model itself: softmax over the whole row of logits, before any filter.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

// log of the sum of exponentials, stable for any logits.
double LogSumExp(std::span<const float> logits);

// Indices of the `count` largest logits, best first, ties by lower index.
std::vector<Token> BestTokens(std::span<const float> logits, int count);

}  // namespace outrider
