#include "sampling/logit_bias.h"

#include <algorithm>

namespace outrider {
namespace {

using Biases = std::vector<std::pair<Token, float>>;

class LogitBias : public Filter {
 public:
  explicit LogitBias(Biases biases) : biases_(std::move(biases)) {
    std::stable_sort(biases_.begin(), biases_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  void Apply(Candidates& candidates) override {
    // The candidates are ascending in their tokens at this place, as a rule all of them or what a grammar has left.
    auto next = biases_.begin();
    Token last = kNoToken;
    for (Candidate& candidate : candidates) {
      if (candidate.token <= last) next = LowerBound(candidate.token);
      last = candidate.token;
      while (next != biases_.end() && next->first < candidate.token) ++next;
      for (; next != biases_.end() && next->first == candidate.token; ++next) candidate.logit += next->second;
    }
    candidates.sorted = false;
  }

  void Accept(Token) override {}

 private:
  Biases::iterator LowerBound(Token token) {
    return std::lower_bound(biases_.begin(), biases_.end(), token,
                            [](const auto& bias, Token wanted) { return bias.first < wanted; });
  }

  Biases biases_;  // ascending in tokens
};

}  // namespace

std::unique_ptr<Filter> MakeLogitBias(std::vector<std::pair<Token, float>> biases) {
  return std::make_unique<LogitBias>(std::move(biases));
}

}  // namespace outrider
