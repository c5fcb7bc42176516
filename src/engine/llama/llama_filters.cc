#include "engine/llama/llama_filters.h"

#include <fmt/format.h>
#include <llama.h>

#include <cstddef>
#include <limits>

#include "base/log.h"
#include "engine/llama/backend.h"
#include "sampling/gbnf_check.h"
#include "sampling/logit_bias.h"
#include "sampling/reasoning_budget.h"

// Of libllama, but in none of its public headers: DRY with sequences of tokens instead of strings.
llama_sampler* llama_sampler_init_dry_testing(float dry_multiplier, float dry_base, int32_t dry_allowed_length,
                                              int32_t dry_penalty_last_n,
                                              const std::vector<std::vector<llama_token>>& seq_breakers);

namespace outrider {
namespace {

// Candidates are passed to libllama without conversion.
static_assert(sizeof(Candidate) == sizeof(llama_token_data) &&
              offsetof(Candidate, token) == offsetof(llama_token_data, id) &&
              offsetof(Candidate, logit) == offsetof(llama_token_data, logit) &&
              offsetof(Candidate, probability) == offsetof(llama_token_data, p));

class LlamaFilter : public Filter {
 public:
  explicit LlamaFilter(llama_sampler* sampler) : sampler_(sampler) {}

  void Apply(Candidates& candidates) override {
    if (failed_) return Forbid(candidates);
    try {
      llama_token_data_array array{reinterpret_cast<llama_token_data*>(candidates.data), candidates.size, -1,
                                   candidates.sorted};
      llama_sampler_apply(sampler_.get(), &array);
      candidates = {reinterpret_cast<Candidate*>(array.data), array.size, array.sorted};
    } catch (const std::exception& error) {
      Fail(error);
      Forbid(candidates);
    }
  }

  void Accept(Token token) override {
    if (failed_) return;
    try {
      llama_sampler_accept(sampler_.get(), token);
    } catch (const std::exception& error) {
      Fail(error);
    }
  }

  bool failed() const { return failed_; }

 private:
  // Only a grammar can fail: when it has to accept a token that it does not allow. From then on it allows no token,
  // which ends the generation with an error. That is better than text that does not follow the grammar.
  void Fail(const std::exception& error) {
    LogDebug("a grammar failed: {}", error.what());
    failed_ = true;
  }

  static void Forbid(Candidates& candidates) {
    for (Candidate& candidate : candidates) candidate.logit = -std::numeric_limits<float>::infinity();
  }

  struct FreeSampler {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
  };
  std::unique_ptr<llama_sampler, FreeSampler> sampler_;
  bool failed_ = false;
};

std::unique_ptr<Filter> Wrap(llama_sampler* sampler) {
  return std::make_unique<LlamaFilter>(sampler);
}

std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

std::unique_ptr<Filter> LlamaFilterFactory::LogitBias(const std::vector<std::pair<Token, float>>& bias) {
  return MakeLogitBias(bias);
}

std::unique_ptr<Filter> LlamaFilterFactory::Penalties(const SamplingOptions& options) {
  return Wrap(llama_sampler_init_penalties(model_->tokenizer().vocabulary_size(), LookBack(options.repeat_last_n),
                                           options.repeat_penalty, options.frequency_penalty,
                                           options.presence_penalty));
}

std::unique_ptr<Filter> LlamaFilterFactory::Dry(const SamplingOptions& options) {
  const int look_back = LookBack(options.dry_penalty_last_n);
  const auto breakers = dry_breakers_.Find(options.dry_sequence_breakers);
  const bool off = options.dry_base < 1 || look_back == 0;  // libllama's rule; the other function does not know it
  if (off || breakers.empty()) {
    return Wrap(llama_sampler_init_dry(model_->tokenizer().vocab(), options.dry_multiplier, options.dry_base,
                                       options.dry_allowed_length, look_back, nullptr, 0));
  }
  return Wrap(llama_sampler_init_dry_testing(options.dry_multiplier, options.dry_base, options.dry_allowed_length,
                                             look_back, breakers));
}

std::unique_ptr<Filter> LlamaFilterFactory::TopNSigma(float n) {
  return Wrap(llama_sampler_init_top_n_sigma(n));
}
std::unique_ptr<Filter> LlamaFilterFactory::TopK(int k) {
  return Wrap(llama_sampler_init_top_k(k));
}
std::unique_ptr<Filter> LlamaFilterFactory::TypicalP(float p) {
  return Wrap(llama_sampler_init_typical(p, 1));
}
std::unique_ptr<Filter> LlamaFilterFactory::TopP(float p) {
  return Wrap(llama_sampler_init_top_p(p, 1));
}
std::unique_ptr<Filter> LlamaFilterFactory::MinP(float p) {
  return Wrap(llama_sampler_init_min_p(p, 1));
}

std::unique_ptr<Filter> LlamaFilterFactory::DynamicTemperature(float temperature, float range, float exponent) {
  return Wrap(llama_sampler_init_temp_ext(temperature, range, exponent));
}

std::unique_ptr<Filter> LlamaFilterFactory::ReasoningBudget(const ReasoningOptions& options) {
  return std::make_unique<outrider::ReasoningBudget>(
      options, [model = model_](Token token) { return model->tokenizer().Piece(token, /*show_special=*/true); });
}

Result<std::unique_ptr<Filter>> LlamaFilterFactory::Grammar(const GrammarOptions& options) {
  const auto is_token = [&](std::string_view text) {
    return model_->tokenizer().Tokenize(text, /*add_bos=*/false, SpecialTokens::kParse).size() == 1;
  };
  if (Status status = CheckGbnf(options.text, is_token); !status.ok()) return status;
  const llama_vocab* vocab = model_->tokenizer().vocab();
  ErrorLogCapture errors;
  llama_sampler* sampler = nullptr;
  try {
    if (options.lazy) {
      auto patterns = Pointers(options.trigger_patterns);
      sampler = llama_sampler_init_grammar_lazy_patterns(vocab, options.text.c_str(), "root", patterns.data(),
                                                         patterns.size(), options.trigger_tokens.data(),
                                                         options.trigger_tokens.size());
    } else {
      sampler = llama_sampler_init_grammar(vocab, options.text.c_str(), "root");
    }
  } catch (const std::exception& error) {
    return InvalidArgument(fmt::format("the grammar cannot be used: {}", error.what()), "grammar");
  }
  if (sampler == nullptr) {
    const std::string reason = errors.text().substr(0, errors.text().find('\n'));
    return InvalidArgument(fmt::format("the grammar does not parse{}{}", reason.empty() ? "" : ": ", reason),
                           "grammar");
  }
  auto grammar = std::make_unique<LlamaFilter>(sampler);
  if (!options.lazy) {
    const LlamaTokenizer& tokenizer = model_->tokenizer();
    for (Token token : tokenizer.Tokenize(options.prefill, /*add_bos=*/false, SpecialTokens::kParse)) {
      // libllama aborts on an end token inside a grammar.
      if (!tokenizer.EndsGeneration(token)) grammar->Accept(token);
      if (tokenizer.EndsGeneration(token) || grammar->failed()) {
        return InvalidArgument(
            "the beginning of the answer that the conversation gives does not fit the format asked for", "messages");
      }
    }
  }
  return Result<std::unique_ptr<Filter>>(std::move(grammar));
}

}  // namespace outrider
