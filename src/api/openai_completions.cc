// POST /v1/completions: text in, text out, without a chat template.
#include <limits>

#include "api/answer_fields.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/openai_common.h"
#include "api/prepare.h"

namespace outrider {
namespace {

class TextCompletionWriter : public ResponseWriter {
 public:
  // `logprobs`: alternatives to report; -1 = no logprobs at all.
  TextCompletionWriter(int logprobs, int index, std::shared_ptr<OpenAiAnswer> answer, const GenerationRequest& request,
                       const ApiContext& context)
      : logprobs_(logprobs), index_(index), answer_(std::move(answer)), tokenizer_(context.tokenizer) {
    if (answer_->options.verbose) verbose_.emplace(LlamaAnswerOptions{index}, request, context);
  }

  std::string Append(const Chunk& chunk) override {
    if (logprobs_ >= 0) tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (chunk.completion) completion_ = *chunk.completion;
    if (verbose_) verbose_->Observe(chunk);
    if (verbose_ || !answer_->options.stream) text_ += chunk.text;
    if (!answer_->options.stream) return "";
    std::string events;
    for (const PromptProgress& progress : chunk.progress) {
      events += ChunkEvent("", nullptr, {{"prompt_progress", ProgressJson(progress)}});
    }
    Json timings = Json::object();
    if (answer_->options.timings_per_token) timings["timings"] = TimingsJson(chunk.timings);
    if (!chunk.text.empty()) events += ChunkEvent(chunk.text, nullptr, timings);
    if (chunk.completion) events += LastEvents();
    return events;
  }

  Json Whole() override {
    Json answer = MakeObject(answer_->whole, text_, OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    answer_->FinishWhole(index_, completion_, &answer);
    if (verbose_) answer["__verbose"] = verbose_->Last(text_, {});
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  Json MakeObject(const char* object, const std::string& text, Json finish_reason) {
    Json logprobs;
    if (logprobs_ >= 0) logprobs = LegacyLogprobs(tokens_, tokenizer_, logprobs_ > 0, &offset_);
    tokens_.clear();
    return answer_->envelope.Make(object, {{"index", index_},
                                           {"text", text},
                                           {"logprobs", std::move(logprobs)},
                                           {"finish_reason", std::move(finish_reason)}});
  }

  std::string ChunkEvent(const std::string& text, Json finish_reason, const Json& more = Json::object()) {
    const bool last = !finish_reason.is_null();
    Json event = MakeObject(answer_->event, text, std::move(finish_reason));
    if (answer_->options.include_usage) event["usage"] = nullptr;
    if (last) AddOurs(completion_, &event);
    if (last && verbose_) event["__verbose"] = verbose_->Last(text_, {});
    event.update(more);
    return SseEvent("", event);
  }

  std::string LastEvents() {
    std::string events = ChunkEvent("", OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    return events += answer_->EndOfChoice(index_, completion_);
  }

  const int logprobs_;
  const int index_;
  const std::shared_ptr<OpenAiAnswer> answer_;
  const Tokenizer& tokenizer_;
  std::optional<LlamaAnswer> verbose_;
  std::string text_;  // not kept if nothing needs it
  std::vector<GeneratedToken> tokens_;
  size_t offset_ = 0;  // characters of the text whose logprobs were reported
  Completion completion_;
};

Status RefuseUnsupported(const Json& body) {
  FieldReader fields(body);
  bool echo = false;
  int best_of = 1, n = 1;
  std::string suffix;
  fields.Bool("echo", &echo);
  fields.Int("best_of", 1, std::numeric_limits<int>::max(), &best_of);
  fields.Int("n", 1, std::numeric_limits<int>::max(), &n);
  fields.String("suffix", &suffix);
  if (echo) fields.Fail("echo", "is not supported");
  if (best_of != n && best_of > 1) {
    fields.Fail("best_of", "must equal n: answers are not ranked; ask for n answers with logprobs and choose yourself");
  }
  if (!suffix.empty())
    fields.Fail("suffix", "is not supported here; /infill writes text between a prefix and a suffix");
  return fields.status();
}

}  // namespace

Result<ParsedRequest> ParseTextCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  AnswerOptions options;
  int n = 1, logprobs = -1;
  FieldReader fields(body);
  fields.Int("logprobs", 0, kMaxTopLogprobs, &logprobs);
  if (!fields.status().ok()) return fields.status();
  if (const Status status = RefuseUnsupported(body); !status.ok()) return status;
  if (const Status status = ReadAnswerOptions(body, context, &options); !status.ok()) return status;
  if (const Status status = ReadChoiceCount(body, &n); !status.ok()) return status;

  GenerationRequest request;
  request.owner = owner;
  request.top_logprobs = logprobs;
  request.report_progress = options.stream && options.return_progress;
  const Status limit =
      ReadMaxTokens(body, {"max_tokens", "n_predict"}, MaxTokensLimits::kFromMinusOne, context, &request);
  if (!limit.ok()) return limit;
  Result<std::vector<GenerationRequest>> prompts = PrepareTexts(body, context, std::move(request));
  if (!prompts.ok()) return prompts.status();
  const auto answer = std::make_shared<OpenAiAnswer>("cmpl-", "text_completion", "text_completion", options, context,
                                                     static_cast<int>(prompts->size()) * n, n);
  return WithChoices(std::move(*prompts), n, options.stream,
                     {.make_writer =
                          [&](const GenerationRequest& choice, int index) {
                            return std::make_unique<TextCompletionWriter>(logprobs, index, answer, choice, context);
                          },
                      .merge = [answer](std::vector<Json> answers) { return answer->Merge(std::move(answers)); }});
}

}  // namespace outrider
