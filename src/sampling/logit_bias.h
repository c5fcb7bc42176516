// The filter that adds biases to logits. libllama has one too, but it compares every bias with every candidate when a
// grammar has removed some of them: 4096 biases and a vocabulary of 150,000 would take half a second for each token.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sampling/filter.h"

namespace outrider {

// A token may occur several times; its biases are added in this order.
std::unique_ptr<Filter> MakeLogitBias(std::vector<std::pair<Token, float>> biases);

}  // namespace outrider
