#include "spec/verify.h"

#include <algorithm>
#include <vector>

namespace outrider {
namespace {

double ProbabilityOf(std::span<const TokenProbability> distribution, Token token) {
  const auto found = std::find_if(distribution.begin(), distribution.end(),
                                  [token](const TokenProbability& entry) { return entry.token == token; });
  return found == distribution.end() ? 0 : std::max(0.0f, found->probability);
}

// The entry at which the running sum of the weights exceeds coin * total; kNoToken if all weights are 0.
Token DrawByWeight(std::span<const TokenProbability> distribution, std::span<const double> weights, double coin) {
  double total = 0;
  for (const double weight : weights) total += weight;
  const double mark = coin * total;
  double sum = 0;
  Token last = kNoToken;  // returned if the sum stays below the mark because of rounding
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    sum += weights[i];
    last = distribution[i].token;
    if (sum > mark) break;
  }
  return last;
}

// max(0, p - q) for each entry of p.
std::vector<double> Residual(std::span<const TokenProbability> target, Token drafted,
                             std::span<const TokenProbability> draft) {
  std::vector<TokenProbability> sorted(draft.begin(), draft.end());
  if (sorted.empty()) sorted.push_back({drafted, 1.0f});
  const auto by_token = [](const TokenProbability& a, const TokenProbability& b) { return a.token < b.token; };
  std::sort(sorted.begin(), sorted.end(), by_token);

  std::vector<double> residual;
  residual.reserve(target.size());
  for (const TokenProbability& entry : target) {
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), entry, by_token);
    const bool drawable = found != sorted.end() && found->token == entry.token;
    const double excess = double{entry.probability} - (drawable ? std::max(0.0f, found->probability) : 0.0);
    residual.push_back(entry.token == drafted ? 0 : std::max(0.0, excess));
  }
  return residual;
}

}  // namespace

Token DrawByRejection(std::span<const TokenProbability> target, Token drafted, std::span<const TokenProbability> draft,
                      double accept_coin, double residual_coin) {
  const double p = ProbabilityOf(target, drafted);
  const double q = draft.empty() ? 1.0 : ProbabilityOf(draft, drafted);

  // A token that is missing in its own distribution was not drawn from it, so the distribution cannot be used. Then the
  // token is drawn from the target's distribution alone, which is right whatever was drafted.
  const bool drawn_from_draft = q > 0;
  if (drawn_from_draft && accept_coin * q < p) return drafted;

  std::vector<double> weights;
  if (drawn_from_draft) weights = Residual(target, drafted, draft);
  const Token drawn = DrawByWeight(target, weights, residual_coin);
  if (drawn != kNoToken) return drawn;

  // Either p and q are the same except for rounding, or the drafted token was not drawn from q.
  weights.clear();
  for (const TokenProbability& entry : target) {
    const bool rejected = drawn_from_draft && entry.token == drafted && target.size() > 1;
    weights.push_back(rejected ? 0 : std::max(0.0f, entry.probability));
  }
  return DrawByWeight(target, weights, residual_coin);
}

}  // namespace outrider
