// POST /v1/chat/completions.
#include "api/answer_fields.h"
#include "api/chat_input.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/openai_common.h"
#include "api/prepare.h"
#include "api/reasoning_fields.h"
#include "chat/chat_stream.h"

namespace outrider {
namespace {

struct ChatOptions {
  bool logprobs = false;
  bool provenance = false;
};

Json ToolCallJson(const ToolCall& call) {
  return {{"id", call.id}, {"type", "function"}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

Json DeltaJson(const ChatDelta& delta) {
  switch (delta.kind) {
    case ChatDelta::Kind::kReasoning:
      return {{"reasoning_content", delta.text}};
    case ChatDelta::Kind::kContent:
      return {{"content", delta.text}};
    case ChatDelta::Kind::kToolCall: {
      Json call = {{"index", delta.tool_index}};
      call.update(ToolCallJson(delta.call));
      return {{"tool_calls", Json::array({std::move(call)})}};
    }
    case ChatDelta::Kind::kToolArguments:
      return {{"tool_calls", Json::array({{{"index", delta.tool_index}, {"function", {{"arguments", delta.text}}}}})}};
  }
  return Json::object();
}

Json MessageJson(const ChatMessage& message) {
  Json json = {{"role", "assistant"}, {"content", message.content}};
  if (message.content.empty() && !message.tool_calls.empty()) json["content"] = nullptr;
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  for (const ToolCall& call : message.tool_calls) json["tool_calls"].push_back(ToolCallJson(call));
  return json;
}

class ChatCompletionWriter : public ResponseWriter {
 public:
  ChatCompletionWriter(const ChatOptions& options, int index, std::shared_ptr<OpenAiAnswer> answer,
                       std::shared_ptr<const ChatParser> parser, const GenerationRequest& request,
                       const ApiContext& context)
      : options_(options),
        index_(index),
        answer_(std::move(answer)),
        tokenizer_(context.tokenizer),
        message_(std::move(parser)) {
    if (answer_->options.verbose) verbose_.emplace(LlamaAnswerOptions{index}, request, context);
  }

  std::string Append(const Chunk& chunk) override {
    if (options_.logprobs) tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (options_.provenance) provenance_.insert(provenance_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (chunk.completion) completion_ = *chunk.completion;
    if (verbose_) verbose_->Observe(chunk);
    if (verbose_ || !answer_->options.stream) text_ += chunk.text;
    if (!answer_->options.stream) return "";
    std::string events;
    if (!began_) events += ChunkEvent({{"role", "assistant"}, {"content", nullptr}});
    began_ = true;
    for (const PromptProgress& progress : chunk.progress) {
      events += ChunkEvent(Json::object(), nullptr, {{"prompt_progress", ProgressJson(progress)}});
    }
    Json timings = Json::object();
    if (answer_->options.timings_per_token) timings["timings"] = TimingsJson(chunk.timings);
    for (const ChatDelta& delta : message_.Feed(chunk.text, chunk.completion.has_value())) {
      events += ChunkEvent(DeltaJson(delta), nullptr, timings);
    }
    if (chunk.completion) events += LastEvents();
    return events;
  }

  Json Whole() override {
    message_.Feed(text_, /*last=*/true);
    Json answer = answer_->envelope.Make(answer_->whole, {{"index", index_},
                                                          {"message", MessageJson(message_.message())},
                                                          {"logprobs", TakeLogprobs()},
                                                          {"finish_reason", FinishReasonText()}});
    answer_->FinishWhole(index_, completion_, &answer);
    AddProvenance(&answer);
    if (verbose_) answer["__verbose"] = verbose_->Last(text_, {});
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  // The log probabilities of all tokens that were not reported yet: deltas do not begin and end where tokens do.
  Json TakeLogprobs() {
    if (!options_.logprobs) return nullptr;
    Json logprobs = {{"content", ChatLogprobs(tokens_, tokenizer_)}, {"refusal", nullptr}};
    tokens_.clear();
    return logprobs;
  }

  std::string ChunkEvent(Json delta, Json finish_reason = nullptr, const Json& more = Json::object()) {
    const bool first = !began_;
    Json event = answer_->envelope.Make(answer_->event, {{"index", index_},
                                                         {"delta", std::move(delta)},
                                                         {"logprobs", first ? Json() : TakeLogprobs()},
                                                         {"finish_reason", finish_reason}});
    if (answer_->options.include_usage) event["usage"] = nullptr;
    if (!finish_reason.is_null()) {
      AddOurs(completion_, &event);
      if (verbose_) event["__verbose"] = verbose_->Last(text_, {});
    }
    event.update(more);
    AddProvenance(&event);
    return SseEvent("", event);
  }

  // The drafters of all tokens that were not reported yet.
  void AddProvenance(Json* event) {
    if (!options_.provenance) return;
    (*event)["provenance"] = ProvenanceJson(provenance_);
    provenance_.clear();
  }

  std::string LastEvents() {
    std::string events = ChunkEvent(Json::object(), FinishReasonText());
    return events += answer_->EndOfChoice(index_, completion_);
  }

  const char* FinishReasonText() const {
    return OpenAiFinishReason(completion_, !message_.message().tool_calls.empty());
  }

  const ChatOptions options_;
  const int index_;
  const std::shared_ptr<OpenAiAnswer> answer_;
  const Tokenizer& tokenizer_;
  ChatStream message_;
  std::optional<LlamaAnswer> verbose_;
  std::string text_;                        // as the model wrote it; not kept if nothing needs it
  std::vector<GeneratedToken> tokens_;      // whose logprobs were not reported yet
  std::vector<GeneratedToken> provenance_;  // whose drafters were not reported yet
  Completion completion_;
  bool began_ = false;
};

Status ReadLogprobs(const Json& body, bool* logprobs, GenerationRequest* request) {
  FieldReader fields(body);
  fields.Bool("logprobs", logprobs);
  int top = 0;
  fields.Int("top_logprobs", 0, kMaxTopLogprobs, &top);
  if (fields.Has("top_logprobs") && !*logprobs) fields.Fail("top_logprobs", "needs logprobs to be true");
  if (*logprobs) request->top_logprobs = top;
  return fields.status();
}

}  // namespace

Result<ParsedRequest> ParseChatCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  GenerationRequest request;
  request.owner = owner;
  AnswerOptions answer_options;
  ChatOptions options;
  int n = 1;
  Result<ChatInput> input = ReadChatInput(body);
  if (!input.ok()) return input.status();
  if (const Status status = ReadReasoningFields(body, context, &*input); !status.ok()) return status;
  if (const Status status = ReadAnswerOptions(body, context, &answer_options); !status.ok()) return status;
  if (const Status status = ReadChoiceCount(body, &n); !status.ok()) return status;
  if (const Status status = ReadLogprobs(body, &options.logprobs, &request); !status.ok()) return status;
  if (const Status status = ReadGenerationFields(body, context, &request); !status.ok()) return status;
  const Status limit = ReadMaxTokens(body, {"max_completion_tokens", "max_tokens", "n_predict"},
                                     MaxTokensLimits::kFromMinusOne, context, &request);
  if (!limit.ok()) return limit;
  const Result<std::shared_ptr<const ChatParser>> parser = PrepareChat(*input, context, &request);
  if (!parser.ok()) return parser.status();
  options.provenance = request.speculation.provenance;
  request.report_progress = answer_options.stream && answer_options.return_progress;

  const auto answer = std::make_shared<OpenAiAnswer>("chatcmpl-", "chat.completion", "chat.completion.chunk",
                                                     answer_options, context, n, n);
  return WithChoices({request}, n, answer_options.stream,
                     {.make_writer =
                          [&](const GenerationRequest& choice, int index) {
                            return std::make_unique<ChatCompletionWriter>(options, index, answer, *parser, choice,
                                                                          context);
                          },
                      .merge = [answer](std::vector<Json> answers) { return answer->Merge(std::move(answers)); }});
}

}  // namespace outrider
