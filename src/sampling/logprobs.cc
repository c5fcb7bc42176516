#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace outrider {

double LogSumExp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::vector<Token> BestTokens(std::span<const float> logits, int count) {
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto kept = static_cast<ptrdiff_t>(std::min<size_t>(tokens.size(), static_cast<size_t>(std::max(count, 0))));
  std::partial_sort(tokens.begin(), tokens.begin() + kept, tokens.end(),
                    [&](Token a, Token b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  tokens.resize(static_cast<size_t>(kept));
  return tokens;
}

}  // namespace outrider
