// Filters: they change or remove candidates between a model's logits and the draw.
//
// The order in which they apply is decided in sampler.cc. Those that libllama has are made by a FilterFactory, which
// engine/llama implements, so that src/sampling does not depend on libllama. A filter belongs to one request and is
// used by one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "sampling/candidate.h"
#include "sampling/sampling_options.h"

namespace outrider {

class Filter {
 public:
  virtual ~Filter() = default;

  // Leaves the filter's state as it was: applying twice to the same candidates gives the same result. Candidates that
  // must not be chosen may stay with a logit of minus infinity.
  virtual void Apply(Candidates& candidates) = 0;

  // The token at the end of the sequence is now `token`.
  virtual void Accept(Token token) = 0;
};

// Makes the filters a library provides. A null pointer means the filter would do nothing. Thread-safe.
class FilterFactory {
 public:
  virtual ~FilterFactory() = default;

  virtual std::unique_ptr<Filter> LogitBias(const std::vector<std::pair<Token, float>>& bias) = 0;
  virtual std::unique_ptr<Filter> Penalties(const SamplingOptions& options) = 0;
  virtual std::unique_ptr<Filter> Dry(const SamplingOptions& options) = 0;
  virtual std::unique_ptr<Filter> TopNSigma(float n) = 0;
  virtual std::unique_ptr<Filter> TopK(int k) = 0;
  virtual std::unique_ptr<Filter> TypicalP(float p) = 0;
  virtual std::unique_ptr<Filter> TopP(float p) = 0;
  virtual std::unique_ptr<Filter> MinP(float p) = 0;
  // Divides the logits by a temperature that is the higher the less sure the model is.
  virtual std::unique_ptr<Filter> DynamicTemperature(float temperature, float range, float exponent) = 0;

  // Ends the model's thinking when its budget is used up.
  virtual std::unique_ptr<Filter> ReasoningBudget(const ReasoningOptions& options) = 0;

  // Forbidden candidates get a logit of minus infinity. kInvalidArgument if the grammar does not parse.
  virtual Result<std::unique_ptr<Filter>> Grammar(const GrammarOptions& options) = 0;
};

}  // namespace outrider
