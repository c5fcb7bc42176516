#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/gumbel.h"
#include "sampling/mirostat.h"
#include "sampling/xtc.h"

namespace outrider {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool Allows(Filter& grammar, Token token) {
  Candidate single{token, 1.0f, 0.0f};
  Candidates candidates{&single, 1, true};
  grammar.Apply(candidates);
  return single.logit != kForbidden;
}

class Scale : public Filter {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  void Apply(Candidates& candidates) override {
    for (Candidate& candidate : candidates) candidate.logit *= factor_;
  }
  void Accept(Token) override {}

 private:
  const float factor_;
};

// The temperature of the draw itself. 1 if a filter has scaled the logits before, or nothing is to scale them.
float DrawTemperature(const SamplingOptions& options, SamplingStage last) {
  const auto& stages = options.stages;
  const bool used = std::find(stages.begin(), stages.end(), SamplingStage::kTemperature) != stages.end();
  if (!used || options.dynatemp_range > 0) return 1;
  if (options.temperature <= 0) return 0;
  return last == SamplingStage::kTemperature ? options.temperature : 1;
}

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::Create(const SamplingOptions& options, std::span<const Token> prompt,
                                                 FilterFactory& factory) {
  std::unique_ptr<Sampler> sampler(new Sampler(options));
  if (!options.logit_bias.empty()) sampler->filters_.push_back(factory.LogitBias(options.logit_bias));
  options.mirostat == 0 ? sampler->AddStages(factory) : sampler->AddMirostat();
  for (Token token : prompt) {
    for (auto& filter : sampler->filters_) filter->Accept(token);
  }
  if (options.reasoning.budget >= 0) {
    // It comes first and leaves a single candidate, which no other filter can drop. It does not look at the prompt.
    sampler->filters_.insert(sampler->filters_.begin(), factory.ReasoningBudget(options.reasoning));
    if (sampler->filters_before_xtc_) ++*sampler->filters_before_xtc_;
  }
  if (!options.grammar.text.empty()) {
    auto grammar = factory.Grammar(options.grammar);
    if (!grammar.ok()) return grammar.status();
    sampler->grammar_ = std::move(*grammar);
  }
  return sampler;
}

void Sampler::AddStages(FilterFactory& factory) {
  const SamplingOptions& options = options_;
  const auto add = [&](std::unique_ptr<Filter> filter) {
    if (filter) filters_.push_back(std::move(filter));
  };
  const auto last = options.stages.empty() ? SamplingStage::kXtc : options.stages.back();
  temperature_ = DrawTemperature(options, last);
  // These keep the best candidate, so they cannot change a greedy choice.
  const bool greedy = this->greedy();
  for (const SamplingStage stage : options.stages) {
    switch (stage) {
      case SamplingStage::kPenalties:
        if (options.repeat_penalty != 1 || options.frequency_penalty != 0 || options.presence_penalty != 0) {
          add(factory.Penalties(options));
        }
        break;
      case SamplingStage::kDry:
        if (options.dry_multiplier != 0) add(factory.Dry(options));
        break;
      case SamplingStage::kTopNSigma:
        if (!greedy && options.top_n_sigma > 0) add(factory.TopNSigma(options.top_n_sigma));
        break;
      case SamplingStage::kTopK:
        if (!greedy && options.top_k > 0) add(factory.TopK(options.top_k));
        break;
      case SamplingStage::kTypicalP:
        if (options.typical_p < 1) add(factory.TypicalP(options.typical_p));
        break;
      case SamplingStage::kTopP:
        if (!greedy && options.top_p < 1) add(factory.TopP(options.top_p));
        break;
      case SamplingStage::kMinP:
        if (!greedy && options.min_p > 0) add(factory.MinP(options.min_p));
        break;
      case SamplingStage::kXtc:
        filters_before_xtc_ = filters_.size();
        break;
      case SamplingStage::kTemperature:
        if (options.dynatemp_range > 0) {
          add(factory.DynamicTemperature(options.temperature, options.dynatemp_range, options.dynatemp_exponent));
        } else if (!greedy && stage != last) {
          add(std::make_unique<Scale>(1.0f / options.temperature));
        }
        break;
    }
  }
}

// As in llama.cpp, the temperature comes before it, and nothing else.
void Sampler::AddMirostat() {
  if (options_.temperature <= 0) {
    temperature_ = 0;
    return;
  }
  if (options_.temperature != 1) filters_.push_back(std::make_unique<Scale>(1.0f / options_.temperature));
  filters_.push_back(std::make_unique<Mirostat>(options_.mirostat, options_.mirostat_tau, options_.mirostat_eta));
}

Token Sampler::Draw(std::span<const float> logits, Pos position) {
  // Applying the grammar to the whole vocabulary is expensive, and most drawn tokens fit the grammar anyway. So it is
  // done only if the drawn token does not fit, as in llama.cpp. With Gumbel noise and without filters this has the same
  // distribution as applying the grammar first: which allowed token is the best is independent of whether a forbidden
  // token is better.
  const Token free_choice = DrawFiltered(logits, position, /*grammar_first=*/false);
  if (!grammar_ || (free_choice != kNoToken && Allows(*grammar_, free_choice))) return free_choice;
  return DrawFiltered(logits, position, /*grammar_first=*/true);
}

Token Sampler::DrawFiltered(std::span<const float> logits, Pos position, bool grammar_first) {
  const bool uses_xtc = options_.xtc_probability > 0 && filters_before_xtc_.has_value();
  if (greedy() && filters_.empty() && !grammar_first && !uses_xtc) {
    const Token best = BestToken(logits);
    storage_.assign(1, {best, best == kNoToken ? kForbidden : logits[static_cast<size_t>(best)], 0.0f});
    last_ = {storage_.data(), 1, true};
    return best;
  }
  storage_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) storage_[i] = {static_cast<Token>(i), logits[i], 0.0f};
  last_ = {storage_.data(), storage_.size(), false};
  if (grammar_first) {
    grammar_->Apply(last_);
    // Forbidden candidates are removed, because some filters compute p · log p of every candidate, and 0 · log 0 is not
    // a number.
    Candidate* end =
        std::remove_if(last_.begin(), last_.end(), [](const Candidate& c) { return c.logit == kForbidden; });
    last_.size = static_cast<size_t>(end - last_.data);
    if (last_.size == 0) return kNoToken;
  }
  for (size_t i = 0; i <= filters_.size(); ++i) {
    if (uses_xtc && i == *filters_before_xtc_) {
      ApplyXtc(options_.xtc_probability, options_.xtc_threshold, options_.seed, position, last_);
    }
    if (i < filters_.size()) filters_[i]->Apply(last_);
  }
  return DrawToken(last_, temperature_, options_.seed, position);
}

void Sampler::Accept(Token token) {
  for (auto& filter : filters_) filter->Accept(token);
  if (grammar_) grammar_->Accept(token);
}

std::vector<Candidate> Sampler::LastCandidates() const {
  std::vector<Candidate> result(last_.begin(), last_.end());
  std::erase_if(result, [](const Candidate& c) { return c.logit == kForbidden; });
  std::sort(result.begin(), result.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  if (greedy() && !result.empty()) result.erase(result.begin() + 1, result.end());
  const double scale = temperature_ > 0 ? 1.0 / temperature_ : 1.0;
  double sum = 0;
  for (const Candidate& c : result) sum += std::exp((c.logit - result.front().logit) * scale);
  for (Candidate& c : result) {
    c.probability = static_cast<float>(std::exp((c.logit - result.front().logit) * scale) / sum);
  }
  return result;
}

float Sampler::LastProbability(Token token) const {
  const Candidate* best = std::max_element(last_.begin(), last_.end(),
                                           [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; });
  if (best == last_.end()) return 0;
  if (greedy()) return token == best->token ? 1.0f : 0.0f;
  double sum = 0, own = 0;
  for (const Candidate& c : last_) {
    const double weight = std::exp((c.logit - best->logit) / temperature_);
    sum += weight;
    if (c.token == token) own = weight;
  }
  return static_cast<float>(own / sum);
}

Token BestToken(std::span<const float> logits) {
  if (logits.empty()) return kNoToken;
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace outrider
