// POST /v1/chat/completions.
#include "api/answer_fields.h"
#include "api/chat_input.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/openai_common.h"
#include "api/prepare.h"
#include "chat/chat_stream.h"

namespace outrider {
namespace {

struct ChatOptions {
  bool stream = false;
  bool include_usage = false;
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
  ChatCompletionWriter(const ChatOptions& options, std::shared_ptr<const ChatParser> parser, const ApiContext& context)
      : options_(options),
        tokenizer_(context.tokenizer),
        envelope_("chatcmpl-", context.model_name),
        message_(std::move(parser)) {}

  std::string Append(const Chunk& chunk) override {
    if (options_.logprobs) tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (options_.provenance) provenance_.insert(provenance_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (chunk.completion) completion_ = *chunk.completion;
    if (!options_.stream) {
      text_ += chunk.text;
      return "";
    }
    std::string events;
    if (!began_) events += ChunkEvent({{"role", "assistant"}, {"content", ""}});
    began_ = true;
    for (const ChatDelta& delta : message_.Feed(chunk.text, chunk.completion.has_value())) {
      events += ChunkEvent(DeltaJson(delta));
    }
    if (chunk.completion) events += LastEvents();
    return events;
  }

  Json Whole() override {
    message_.Feed(text_, /*last=*/true);
    Json answer = envelope_.Make("chat.completion", {{"index", 0},
                                                     {"message", MessageJson(message_.message())},
                                                     {"logprobs", TakeLogprobs()},
                                                     {"finish_reason", FinishReasonText()}});
    answer["usage"] = OpenAiUsage(completion_.timings);
    AddOurs(completion_, &answer);
    AddProvenance(&answer);
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

  std::string ChunkEvent(Json delta, Json finish_reason = nullptr) {
    const bool first = !began_;
    Json event = envelope_.Make("chat.completion.chunk", {{"index", 0},
                                                          {"delta", std::move(delta)},
                                                          {"logprobs", first ? Json() : TakeLogprobs()},
                                                          {"finish_reason", finish_reason}});
    if (options_.include_usage) event["usage"] = nullptr;
    if (!finish_reason.is_null()) AddOurs(completion_, &event);
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
    if (options_.include_usage) events += envelope_.UsageEvent("chat.completion.chunk", completion_.timings);
    return events.append(kSseDone);
  }

  const char* FinishReasonText() const {
    return OpenAiFinishReason(completion_, !message_.message().tool_calls.empty());
  }

  const ChatOptions options_;
  const Tokenizer& tokenizer_;
  const OpenAiEnvelope envelope_;
  ChatStream message_;
  std::string text_;                        // not parsed yet; used when not streaming
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
  ParsedRequest request;
  request.generation.owner = owner;
  ChatOptions options;
  const Result<ChatInput> input = ReadChatInput(body);
  if (!input.ok()) return input.status();
  if (const Status status = ReadStreamFields(body, &options.stream, &options.include_usage); !status.ok())
    return status;
  if (const Status status = ReadLogprobs(body, &options.logprobs, &request.generation); !status.ok()) return status;
  if (const Status status = ReadGenerationFields(body, context, &request.generation); !status.ok()) return status;
  const Status limit = ReadMaxTokens(body, {"max_completion_tokens", "max_tokens", "n_predict"},
                                     MaxTokensLimits::kFromMinusOne, context, &request.generation);
  if (!limit.ok()) return limit;
  Result<std::shared_ptr<const ChatParser>> parser = PrepareChat(*input, context, &request.generation);
  if (!parser.ok()) return parser.status();
  options.provenance = request.generation.speculation.provenance;
  request.stream = options.stream;
  request.writer = std::make_unique<ChatCompletionWriter>(options, std::move(*parser), context);
  return request;
}

}  // namespace outrider
