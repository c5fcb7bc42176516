// POST /completion: llama.cpp's own protocol, with the field names of llama-server; and POST /infill, which answers
// alike.
#include "api/answer_fields.h"
#include "api/choices.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/infill.h"
#include "api/llama_answer.h"
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
  bool return_progress = false;
  int n_probs = 0;
  int n = 1;
  std::vector<std::string> response_fields;  // empty = all
};

// Only the fields that were asked for, under the names that were asked for: "timings/predicted_n" is a field of the
// object timings. What does not exist is left out.
Json Select(const Json& answer, const std::vector<std::string>& fields) {
  if (fields.empty()) return answer;
  Json selected = Json::object();
  for (const std::string& field : fields) {
    const Json* value = &answer;
    for (size_t at = 0; value != nullptr && at <= field.size();) {
      const size_t end = std::min(field.find('/', at), field.size());
      const auto found = value->is_object() ? value->find(field.substr(at, end - at)) : value->end();
      value = value->is_object() && found != value->end() ? &*found : nullptr;
      at = end + 1;
    }
    if (value != nullptr) selected[field] = *value;
  }
  return selected;
}

class LlamaCompletionWriter : public ResponseWriter {
 public:
  LlamaCompletionWriter(const LlamaOptions& options, int index, const GenerationRequest& request,
                        const ApiContext& context)
      : options_(options),
        index_(index),
        tokenizer_(context.tokenizer),
        as_probabilities_(request.probabilities_after_filters),
        answer_({index, options.stream, options.timings_per_token, options.n_probs}, request, context) {}

  std::string Append(const Chunk& chunk) override {
    answer_.Observe(chunk);
    if (!options_.stream) {
      text_ += chunk.text;
      tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
      return "";
    }
    std::string events;
    for (const PromptProgress& progress : chunk.progress) events += ProgressEvent(progress, chunk.timings);
    if (!chunk.text.empty() || !chunk.tokens.empty()) events += PieceEvents(chunk);
    if (chunk.completion) events += SseEvent("", Select(answer_.Last("", {}), options_.response_fields));
    return events;
  }

  Json Whole() override {
    Json answer = answer_.Last(text_, options_.return_tokens ? tokens_ : std::vector<GeneratedToken>());
    if (options_.provenance) answer["provenance"] = ProvenanceJson(tokens_);
    if (options_.n_probs > 0) {
      answer["completion_probabilities"] = LlamaProbabilities(tokens_, tokenizer_, as_probabilities_);
    }
    return Select(answer, options_.response_fields);
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  // Who asks for probabilities reads them token by token: then each token has an event of its own.
  std::string PieceEvents(const Chunk& chunk) {
    if (options_.n_probs == 0 || chunk.tokens.size() < 2) {
      return PieceEvent(chunk.text, chunk.tokens, chunk.timings.generated_tokens, chunk);
    }
    std::string pieces;
    for (const GeneratedToken& token : chunk.tokens) pieces += token.piece;
    const bool exact = pieces == chunk.text;  // otherwise tokens end inside characters, or a stop string was cut off
    std::string events;
    for (size_t i = 0; i < chunk.tokens.size(); ++i) {
      const auto after = static_cast<int>(chunk.tokens.size() - i - 1);
      const std::string& text = exact ? chunk.tokens[i].piece : i == 0 ? chunk.text : std::string();
      events += PieceEvent(text, {chunk.tokens[i]}, chunk.timings.generated_tokens - after, chunk);
    }
    return events;
  }

  std::string PieceEvent(const std::string& text, const std::vector<GeneratedToken>& tokens, int generated,
                         const Chunk& chunk) const {
    Json event = Event(text, tokens, generated);
    if (options_.timings_per_token) event["timings"] = TimingsJson(chunk.timings);
    if (options_.provenance) event["provenance"] = ProvenanceJson(tokens);
    if (options_.n_probs > 0) {
      event["completion_probabilities"] = LlamaProbabilities(tokens, tokenizer_, as_probabilities_);
    }
    return SseEvent("", event);
  }

  std::string ProgressEvent(const PromptProgress& progress, const GenerationTimings& timings) const {
    Json event = Event("", {}, 0);
    event["prompt_progress"] = ProgressJson(progress);
    if (options_.timings_per_token) {
      GenerationTimings then = timings;  // `timings` may be those of a later moment
      then.prompt_tokens = progress.processed - progress.cached;
      then.prompt_ms = progress.ms;
      then.generated_tokens = 0;
      then.generate_ms = 0;
      event["timings"] = TimingsJson(then);
    }
    return SseEvent("", event);
  }

  Json Event(const std::string& text, const std::vector<GeneratedToken>& tokens, int generated) const {
    return {{"index", index_},
            {"content", text},
            {"tokens", TokenIds(tokens)},
            {"stop", false},
            {"tokens_predicted", generated},
            {"tokens_evaluated", answer_.prompt_tokens()}};
  }

  const LlamaOptions options_;
  const int index_;
  const Tokenizer& tokenizer_;
  const bool as_probabilities_;
  LlamaAnswer answer_;
  std::string text_;
  std::vector<GeneratedToken> tokens_;
};

Status ReadOptions(const Json& body, const ApiContext& context, LlamaOptions* options, GenerationRequest* request) {
  FieldReader fields(body);
  fields.Bool("stream", &options->stream);
  fields.Bool("return_tokens", &options->return_tokens);
  fields.Bool("timings_per_token", &options->timings_per_token);
  fields.Bool("return_progress", &options->return_progress);
  fields.Int("n_probs", 0, kMaxProbabilities, &options->n_probs);
  fields.Bool("post_sampling_probs", &request->probabilities_after_filters);
  fields.StringOrList("response_fields", kMaxResponseFields, &options->response_fields);
  if (!fields.status().ok()) return fields.status();
  if (options->n_probs > 0) request->top_logprobs = options->n_probs;
  request->report_progress = options->stream && options->return_progress;
  if (const Status status = ReadChoiceCount(body, &options->n); !status.ok()) return status;
  return ReadMaxTokens(body, {"n_predict", "max_tokens"}, MaxTokensLimits::kFromMinusOne, context, request);
}

Result<ParsedRequest> Answer(LlamaOptions options, std::vector<GenerationRequest> prompts, const ApiContext& context) {
  options.provenance = prompts[0].speculation.provenance;
  return WithChoices(std::move(prompts), options.n, options.stream,
                     {.make_writer =
                          [&](const GenerationRequest& choice, int index) {
                            return std::make_unique<LlamaCompletionWriter>(options, index, choice, context);
                          },
                      .merge = [](std::vector<Json> answers) { return Json(std::move(answers)); }});
}

}  // namespace

Result<ParsedRequest> ParseLlamaCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  LlamaOptions options;
  GenerationRequest request;
  request.owner = owner;
  if (const Status status = ReadOptions(body, context, &options, &request); !status.ok()) return status;
  Result<std::vector<GenerationRequest>> prompts = PrepareTexts(body, context, std::move(request));
  if (!prompts.ok()) return prompts.status();
  return Answer(std::move(options), std::move(*prompts), context);
}

Result<ParsedRequest> ParseInfill(const Json& body, const std::string& owner, const ApiContext& context) {
  LlamaOptions options;
  GenerationRequest request;
  request.owner = owner;
  if (const Status status = ReadOptions(body, context, &options, &request); !status.ok()) return status;
  if (const Status status = PrepareFormat(body, context, &request); !status.ok()) return status;
  Result<std::vector<Token>> prompt = InfillPrompt(body, context, request.max_tokens);
  if (!prompt.ok()) return prompt.status();
  request.prompt = std::move(*prompt);
  if (const Status status = CheckPromptFits(request.prompt.size(), context, "prompt"); !status.ok()) return status;
  return Answer(std::move(options), {std::move(request)}, context);
}

}  // namespace outrider
