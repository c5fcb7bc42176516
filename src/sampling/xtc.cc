#include "sampling/xtc.h"

#include <algorithm>
#include <cmath>

#include "sampling/gumbel.h"

namespace outrider {

void ApplyXtc(float probability, float threshold, uint64_t seed, Pos position, Candidates& candidates) {
  if (probability <= 0 || threshold > 0.5f || candidates.size < 2) return;
  if (PositionCoin(seed, position, Coin::kXtc) > probability) return;
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  std::sort(candidates.begin(), candidates.end(), better);
  candidates.sorted = true;
  double sum = 0;
  for (const Candidate& c : candidates) sum += std::exp(static_cast<double>(c.logit) - candidates.data[0].logit);
  size_t reaching = 0;
  while (reaching < candidates.size &&
         std::exp(static_cast<double>(candidates.data[reaching].logit) - candidates.data[0].logit) / sum >= threshold) {
    ++reaching;
  }
  if (reaching < 2) return;  // a single top choice stays
  candidates.data += reaching - 1;
  candidates.size -= reaching - 1;
}

}  // namespace outrider
