// POST /completion: llama.cpp's own protocol, with the field names of llama-server.
#include "api/answer_fields.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/prepare.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

struct LlamaOptions {
  bool stream = false;
  bool return_tokens = false;
  bool provenance = false;
  bool timings_per_token = false;
  int n_probs = 0;
};

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

Json LogitBiasJson(const std::vector<std::pair<Token, float>>& biases) {
  Json list = Json::array();
  for (const auto& [token, bias] : biases) {
    list.push_back({{"token", token}, {"bias", FiniteLogprob(bias)}});
  }
  return list;
}

Json RequestSettings(const GenerationRequest& request, const LlamaOptions& options) {
  Json settings = SettingsJson(request.sampling, request.max_tokens);
  settings.update({{"stop", request.stop},
                   {"ignore_eos", request.ignore_eos},
                   {"stream", options.stream},
                   {"logit_bias", LogitBiasJson(request.sampling.logit_bias)},
                   {"n_probs", options.n_probs},
                   {"grammar", request.sampling.grammar.text},
                   {"timings_per_token", options.timings_per_token},
                   {"post_sampling_probs", request.probabilities_after_filters}});
  return settings;
}

class LlamaCompletionWriter : public ResponseWriter {
 public:
  LlamaCompletionWriter(const LlamaOptions& options, const GenerationRequest& request, const ApiContext& context)
      : options_(options),
        tokenizer_(context.tokenizer),
        model_(context.model_name),
        prompt_(request.prompt),
        as_probabilities_(request.probabilities_after_filters),
        settings_(RequestSettings(request, options)) {}

  std::string Append(const Chunk& chunk) override {
    has_new_line_ = has_new_line_ || chunk.text.find('\n') != std::string::npos;
    if (chunk.completion) completion_ = *chunk.completion;
    if (!options_.stream) {
      text_ += chunk.text;
      tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
      return "";
    }
    std::string events;
    if (!chunk.text.empty() || !chunk.tokens.empty()) events += PieceEvent(chunk);
    if (chunk.completion) events += SseEvent("", LastObject("", {}));
    return events;
  }

  Json Whole() override {
    Json answer = LastObject(text_, options_.return_tokens ? tokens_ : std::vector<GeneratedToken>());
    if (options_.provenance) answer["provenance"] = ProvenanceJson(tokens_);
    if (options_.n_probs > 0) {
      answer["completion_probabilities"] = LlamaProbabilities(tokens_, tokenizer_, as_probabilities_);
    }
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  static Json Ids(const std::vector<GeneratedToken>& tokens) {
    Json ids = Json::array();
    for (const GeneratedToken& token : tokens) ids.push_back(token.token);
    return ids;
  }

  std::string PieceEvent(const Chunk& chunk) const {
    Json event = {{"index", 0},
                  {"content", chunk.text},
                  {"tokens", Ids(chunk.tokens)},
                  {"stop", false},
                  {"tokens_predicted", chunk.timings.generated_tokens},
                  {"tokens_evaluated", prompt_.size()}};
    if (options_.timings_per_token) event["timings"] = TimingsJson(chunk.timings);
    if (options_.provenance) event["provenance"] = ProvenanceJson(chunk.tokens);
    if (options_.n_probs > 0) {
      event["completion_probabilities"] = LlamaProbabilities(chunk.tokens, tokenizer_, as_probabilities_);
    }
    return SseEvent("", event);
  }

  Json LastObject(const std::string& content, const std::vector<GeneratedToken>& tokens) const {
    std::string prompt_text;
    for (const Token token : prompt_) prompt_text += tokenizer_.Piece(token, /*show_special=*/true);
    const GenerationTimings& timings = completion_.timings;
    return {
        {"index", 0},
        {"content", content},
        {"tokens", Ids(tokens)},
        {"id_slot", completion_.slot},
        {"stop", true},
        {"model", model_},
        {"tokens_predicted", timings.generated_tokens},
        {"tokens_evaluated", prompt_.size()},
        {"generation_settings", settings_},
        {"prompt", prompt_text},
        {"has_new_line", has_new_line_},
        {"truncated", false},  // a prompt that does not fit is refused, and no token is ever dropped from the context
        {"stop_type", StopType(completion_.reason)},
        {"stopping_word", completion_.stop_string},
        {"tokens_cached", prompt_.size() + static_cast<size_t>(timings.generated_tokens)},
        {"timings", TimingsJson(completion_)}};
  }

  const LlamaOptions options_;
  const Tokenizer& tokenizer_;
  const std::string model_;
  const std::vector<Token> prompt_;
  const bool as_probabilities_;
  const Json settings_;
  std::string text_;
  std::vector<GeneratedToken> tokens_;
  bool has_new_line_ = false;
  Completion completion_;
};

}  // namespace

Result<ParsedRequest> ParseLlamaCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  ParsedRequest request;
  request.generation.owner = owner;
  LlamaOptions options;
  FieldReader fields(body);
  fields.Bool("stream", &options.stream);
  fields.Bool("return_tokens", &options.return_tokens);
  fields.Bool("timings_per_token", &options.timings_per_token);
  fields.Int("n_probs", 0, kMaxProbabilities, &options.n_probs);
  fields.Bool("post_sampling_probs", &request.generation.probabilities_after_filters);
  if (!fields.status().ok()) return fields.status();

  if (const Status status = PrepareText(body, context, &request.generation); !status.ok()) return status;
  options.provenance = request.generation.speculation.provenance;
  const Status limit = ReadMaxTokens(body, {"n_predict", "max_tokens"}, MaxTokensLimits::kFromMinusOneWithZero, context,
                                     &request.generation);
  if (!limit.ok()) return limit;
  if (options.n_probs > 0) request.generation.top_logprobs = options.n_probs;
  request.stream = options.stream;
  request.writer = std::make_unique<LlamaCompletionWriter>(options, request.generation, context);
  return request;
}

}  // namespace outrider
