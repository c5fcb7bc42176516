// libllama's samplers as filters.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/llama/dry_breakers.h"
#include "engine/llama/llama_model.h"
#include "sampling/filter.h"

namespace outrider {

class LlamaFilterFactory : public FilterFactory {
 public:
  // `sequence_length` is what "the whole sequence" means for penalties.
  LlamaFilterFactory(std::shared_ptr<const LlamaModel> model, Pos sequence_length)
      : model_(std::move(model)), sequence_length_(sequence_length), dry_breakers_(model_->tokenizer().vocab()) {}

  std::unique_ptr<Filter> LogitBias(const std::vector<std::pair<Token, float>>& bias) override;
  std::unique_ptr<Filter> Penalties(const SamplingOptions& options) override;
  std::unique_ptr<Filter> Dry(const SamplingOptions& options) override;
  std::unique_ptr<Filter> TopNSigma(float n) override;
  std::unique_ptr<Filter> TopK(int k) override;
  std::unique_ptr<Filter> TypicalP(float p) override;
  std::unique_ptr<Filter> TopP(float p) override;
  std::unique_ptr<Filter> MinP(float p) override;
  std::unique_ptr<Filter> DynamicTemperature(float temperature, float range, float exponent) override;
  std::unique_ptr<Filter> ReasoningBudget(const ReasoningOptions& options) override;
  Result<std::unique_ptr<Filter>> Grammar(const GrammarOptions& options) override;

 private:
  // libllama allocates the whole window at once; none is longer than a sequence.
  int LookBack(int last_n) const { return last_n < 0 ? sequence_length_ : std::min(last_n, sequence_length_); }

  const std::shared_ptr<const LlamaModel> model_;
  const Pos sequence_length_;
  DryBreakers dry_breakers_;
};

}  // namespace outrider
