#include "drafters/draft_sampler.h"

#include <cmath>
#include <vector>

namespace outrider {
namespace {

constexpr uint64_t kOtherNoise = 0x9e3779b97f4a7c15;  // changes the seed where the target's noise must not be used

// The probability of the best token, from its row of logits.
float ProbabilityOfBest(std::span<const float> logits, Token best) {
  const float max_logit = logits[static_cast<size_t>(best)];
  // Logits this far below the best one are left out: e^-14 times 100,000 tokens is less than 0.1.
  constexpr float kNegligible = 14;
  float sum = 0;
  for (const float logit : logits) {
    if (logit > max_logit - kNegligible) sum += std::exp(logit - max_logit);
  }
  return 1 / sum;
}

}  // namespace

void DraftSampler::Begin(const DraftContext& context, FilterFactory& filters, Token vocabulary) {
  // A draft uses neither grammar nor penalties: they need the whole history, and only remove candidates.
  SamplingOptions options;
  options.seed = context.distributions ? context.sampling.seed ^ kOtherNoise : context.sampling.seed;
  options.temperature = context.sampling.temperature;
  options.top_k = context.sampling.top_k;
  options.top_p = context.sampling.top_p;
  options.min_p = context.sampling.min_p;
  options.typical_p = context.sampling.typical_p;
  options.top_n_sigma = context.sampling.top_n_sigma;
  for (const auto& bias : context.sampling.logit_bias) {
    if (bias.first < vocabulary) options.logit_bias.push_back(bias);
  }
  auto sampler = Sampler::Create(options, {}, filters);
  sampler_ = sampler.ok() ? std::move(*sampler) : nullptr;
  vocabulary_ = vocabulary;
  distributions_ = context.distributions;
}

bool DraftSampler::Append(std::span<const float> logits, const Tokenizer& tokenizer, Proposal& proposal,
                          double* survival) {
  logits = logits.first(static_cast<size_t>(vocabulary_));
  const auto position = static_cast<Pos>(proposal.history.size()) + proposal.draft.size();
  const Token token = sampler_->Draw(logits, position);
  if (token == kNoToken) return false;
  const bool ends = tokenizer.EndsGeneration(token);
  if (ends && !distributions_) return false;  // a draft need not contain the end of the answer
  const float confidence = sampler_->greedy() ? ProbabilityOfBest(logits, token) : sampler_->LastProbability(token);
  *survival *= confidence;
  if (confidence < proposal.p_min) return false;
  proposal.draft.tokens.push_back({token, confidence});
  if (distributions_) {
    auto& all = proposal.draft.distributions;
    while (all.size() + 1 <
           proposal.draft.tokens.size()) {  // another drafter's tokens count as proposed with probability 1
      all.push_back({{proposal.draft.tokens[all.size()].token, 1.0f}});
    }
    std::vector<TokenProbability>& distribution = all.emplace_back();
    for (const Candidate& c : sampler_->LastCandidates()) distribution.push_back({c.token, c.probability});
  }
  return !ends && *survival >= proposal.min_survival && proposal.draft.size() < proposal.max_tokens;
}

}  // namespace outrider
