#include "api/llama_answer.h"

#include <cmath>

#include "api/answer_fields.h"
#include "api/logprobs.h"

namespace outrider {
namespace {

const char* StopType(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfText:
      return "eos";
    case FinishReason::kStopString:
      return "word";
    case FinishReason::kLength:
    case FinishReason::kTimeLimit:
      return "limit";
    case FinishReason::kCancelled:
    case FinishReason::kError:
      break;
  }
  return "none";
}

// A banned token has the bias null: JSON has no infinity.
Json BiasJson(Token token, float bias) {
  return {{"token", token}, {"bias", std::isfinite(bias) ? Json(bias) : Json()}};
}

Json LogitBiasJson(const GenerationRequest& request, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const auto& [token, bias] : request.sampling.logit_bias) list.push_back(BiasJson(token, bias));
  for (Token token = 0; request.ignore_eos && token < tokenizer.vocabulary_size(); ++token) {
    if (tokenizer.EndsGeneration(token)) list.push_back(BiasJson(token, -INFINITY));
  }
  return list;
}

Json AdaptersJson(const AdapterSet& adapters) {
  Json list = Json::array();
  for (const AdapterScale& adapter : adapters) list.push_back({{"id", adapter.id}, {"scale", adapter.scale}});
  return list;
}

Json RequestSettings(const LlamaAnswerOptions& options, const GenerationRequest& request, const ApiContext& context) {
  Json settings = SettingsJson(request.sampling, request.max_tokens);
  std::string drafters;
  for (const std::string& name : context.drafters) drafters += (drafters.empty() ? "" : ",") + name;
  settings.update({{"stop", request.stop},
                   {"ignore_eos", request.ignore_eos},
                   {"stream", options.stream},
                   {"logit_bias", LogitBiasJson(request, context.tokenizer)},
                   {"n_probs", options.n_probs},
                   {"grammar", request.sampling.grammar.text},
                   {"grammar_lazy", request.sampling.grammar.lazy},
                   {"speculative.types", request.speculation.enabled && !drafters.empty() ? drafters : "none"},
                   {"lora", AdaptersJson(request.adapters)},
                   {"timings_per_token", options.timings_per_token},
                   {"post_sampling_probs", request.probabilities_after_filters}});
  return settings;
}

}  // namespace

LlamaAnswer::LlamaAnswer(const LlamaAnswerOptions& options, const GenerationRequest& request, const ApiContext& context)
    : index_(options.index),
      tokenizer_(context.tokenizer),
      model_(context.model_name),
      prompt_(TextTokens(request.prompt, request.media)),
      prompt_tokens_(request.prompt.size()),
      settings_(RequestSettings(options, request, context)) {}

void LlamaAnswer::Observe(const Chunk& chunk) {
  has_new_line_ = has_new_line_ || chunk.text.find('\n') != std::string::npos;
  if (chunk.completion) completion_ = *chunk.completion;
}

Json LlamaAnswer::Last(const std::string& content, const std::vector<GeneratedToken>& tokens) const {
  std::string prompt_text;
  for (const Token token : prompt_) prompt_text += tokenizer_.Piece(token, /*show_special=*/true);
  const GenerationTimings& timings = completion_.timings;
  return {{"index", index_},
          {"content", content},
          {"tokens", TokenIds(tokens)},
          {"id_slot", completion_.slot},
          {"stop", true},
          {"model", model_},
          {"tokens_predicted", timings.generated_tokens},
          {"tokens_evaluated", prompt_tokens_},
          {"generation_settings", settings_},
          {"prompt", prompt_text},
          {"has_new_line", has_new_line_},
          {"truncated", completion_.truncated},
          {"stop_type", StopType(completion_.reason)},
          {"stopping_word", completion_.stop_string},
          {"tokens_cached", prompt_tokens_ + static_cast<size_t>(timings.generated_tokens)},
          {"timings", TimingsJson(completion_)}};
}

Json TokenIds(const std::vector<GeneratedToken>& tokens) {
  Json ids = Json::array();
  for (const GeneratedToken& token : tokens) ids.push_back(token.token);
  return ids;
}

}  // namespace outrider
