// A FilterFactory without a library, for tests: top-k and logit bias are real, a "grammar" is the list of bytes it
// allows, and the other filters do nothing.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sampling/filter.h"
#include "sampling/reasoning_budget.h"

namespace outrider {

class FakeFilterFactory : public FilterFactory {
 public:
  std::unique_ptr<Filter> LogitBias(const std::vector<std::pair<Token, float>>& bias) override {
    struct Bias : Filter {
      std::vector<std::pair<Token, float>> entries;
      void Apply(Candidates& candidates) override {
        for (Candidate& c : candidates) {
          for (const auto& [token, value] : entries) c.logit += c.token == token ? value : 0;
        }
      }
      void Accept(Token) override {}
    };
    auto filter = std::make_unique<Bias>();
    filter->entries = bias;
    return filter;
  }

  std::unique_ptr<Filter> TopK(int k) override {
    struct Top : Filter {
      size_t kept;
      void Apply(Candidates& candidates) override {
        std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
          return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
        });
        candidates.size = std::min(candidates.size, kept);
      }
      void Accept(Token) override {}
    };
    auto filter = std::make_unique<Top>();
    filter->kept = static_cast<size_t>(k);
    return filter;
  }

  std::unique_ptr<Filter> Penalties(const SamplingOptions&) override { return nullptr; }
  std::unique_ptr<Filter> Dry(const SamplingOptions&) override { return nullptr; }
  std::unique_ptr<Filter> TopNSigma(float) override { return nullptr; }
  std::unique_ptr<Filter> TypicalP(float) override { return nullptr; }
  std::unique_ptr<Filter> TopP(float) override { return nullptr; }
  std::unique_ptr<Filter> MinP(float) override { return nullptr; }
  std::unique_ptr<Filter> DynamicTemperature(float, float, float) override { return nullptr; }

  std::unique_ptr<Filter> ReasoningBudget(const ReasoningOptions& options) override {
    return std::make_unique<outrider::ReasoningBudget>(options, [](Token) { return "x"; });
  }

  // `options.text` is the set of bytes that may be generated; "!" does not parse.
  Result<std::unique_ptr<Filter>> Grammar(const GrammarOptions& options) override {
    struct Allowed : Filter {
      std::set<Token> tokens;
      void Apply(Candidates& candidates) override {
        for (Candidate& c : candidates) {
          if (!tokens.contains(c.token)) c.logit = -std::numeric_limits<float>::infinity();
        }
      }
      void Accept(Token) override {}
    };
    if (options.text == "!") return InvalidArgument("the grammar does not parse", "grammar");
    auto filter = std::make_unique<Allowed>();
    for (char c : options.text) filter->tokens.insert(static_cast<unsigned char>(c));
    return Result<std::unique_ptr<Filter>>(std::move(filter));
  }
};

}  // namespace outrider
