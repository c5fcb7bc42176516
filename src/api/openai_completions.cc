// POST /v1/completions: text in, text out, without a chat template.
#include "api/answer_fields.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/openai_common.h"
#include "api/prepare.h"

namespace outrider {
namespace {

struct TextOptions {
  bool stream = false;
  bool include_usage = false;
  int logprobs = -1;  // alternatives to report; -1 = no logprobs at all
};

class TextCompletionWriter : public ResponseWriter {
 public:
  TextCompletionWriter(const TextOptions& options, const ApiContext& context)
      : options_(options), tokenizer_(context.tokenizer), envelope_("cmpl-", context.model_name) {}

  std::string Append(const Chunk& chunk) override {
    if (options_.logprobs >= 0) tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (chunk.completion) completion_ = *chunk.completion;
    if (!options_.stream) {
      text_ += chunk.text;
      return "";
    }
    std::string events;
    if (!chunk.text.empty()) events += ChunkEvent(chunk.text, nullptr);
    if (chunk.completion) events += LastEvents();
    return events;
  }

  Json Whole() override {
    Json answer = MakeObject(text_, OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    answer["usage"] = OpenAiUsage(completion_.timings);
    AddOurs(completion_, &answer);
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  Json MakeObject(const std::string& text, Json finish_reason) {
    Json logprobs;
    if (options_.logprobs >= 0) logprobs = LegacyLogprobs(tokens_, tokenizer_, options_.logprobs > 0, &offset_);
    tokens_.clear();
    return envelope_.Make(
        "text_completion",
        {{"index", 0}, {"text", text}, {"logprobs", std::move(logprobs)}, {"finish_reason", std::move(finish_reason)}});
  }

  std::string ChunkEvent(const std::string& text, Json finish_reason) {
    const bool last = !finish_reason.is_null();
    Json event = MakeObject(text, std::move(finish_reason));
    if (options_.include_usage) event["usage"] = nullptr;
    if (last) AddOurs(completion_, &event);
    return SseEvent("", event);
  }

  std::string LastEvents() {
    std::string events = ChunkEvent("", OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    if (options_.include_usage) events += envelope_.UsageEvent("text_completion", completion_.timings);
    return events.append(kSseDone);
  }

  const TextOptions options_;
  const Tokenizer& tokenizer_;
  const OpenAiEnvelope envelope_;
  std::string text_;
  std::vector<GeneratedToken> tokens_;
  size_t offset_ = 0;  // characters of the text whose logprobs were reported
  Completion completion_;
};

Status RefuseUnsupported(const Json& body) {
  FieldReader fields(body);
  bool echo = false;
  int best_of = 1;
  std::string suffix;
  fields.Bool("echo", &echo);
  fields.Int("best_of", 1, std::numeric_limits<int>::max(), &best_of);
  fields.String("suffix", &suffix);
  if (echo) fields.Fail("echo", "is not supported");
  if (best_of > 1) fields.Fail("best_of", "only best_of = 1 is supported");
  if (!suffix.empty()) fields.Fail("suffix", "is not supported");
  return fields.status();
}

}  // namespace

Result<ParsedRequest> ParseTextCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  ParsedRequest request;
  request.generation.owner = owner;
  TextOptions options;
  FieldReader fields(body);
  fields.Int("logprobs", 0, kMaxTopLogprobs, &options.logprobs);
  if (!fields.status().ok()) return fields.status();
  if (const Status status = RefuseUnsupported(body); !status.ok()) return status;
  if (const Status status = ReadStreamFields(body, &options.stream, &options.include_usage); !status.ok())
    return status;
  if (const Status status = PrepareText(body, context, &request.generation); !status.ok()) return status;
  const Status limit =
      ReadMaxTokens(body, {"max_tokens", "n_predict"}, MaxTokensLimits::kFromMinusOne, context, &request.generation);
  if (!limit.ok()) return limit;
  request.generation.top_logprobs = options.logprobs;
  request.stream = options.stream;
  request.writer = std::make_unique<TextCompletionWriter>(options, context);
  return request;
}

}  // namespace outrider
