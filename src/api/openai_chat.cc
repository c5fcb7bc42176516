// POST /v1/chat/completions.
#include <fmt/format.h>

#include "api/fields.h"
#include "api/logprobs.h"
#include "api/openai_parts.h"

namespace outrider {
namespace {

struct ChatOptions {
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
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
    AddOurs(&answer);
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  // Logprobs of all tokens so far that were not reported yet: deltas do not begin and end where tokens do.
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
    if (!finish_reason.is_null()) AddOurs(&event);
    return SseEvent("", event);
  }

  std::string LastEvents() {
    std::string events = ChunkEvent(Json::object(), FinishReasonText());
    if (options_.include_usage) {
      Json usage = envelope_.Make("chat.completion.chunk", nullptr);
      usage["usage"] = OpenAiUsage(completion_.timings);
      events += SseEvent("", usage);
    }
    return events.append(kSseDone);
  }

  const char* FinishReasonText() const {
    return OpenAiFinishReason(completion_, !message_.message().tool_calls.empty());
  }

  // What OpenAI does not send: the seed that repeats this answer, and llama.cpp's timings.
  void AddOurs(Json* answer) const {
    (*answer)["seed"] = completion_.seed;
    (*answer)["timings"] = TimingsJson(completion_.timings);
  }

  const ChatOptions options_;
  const Tokenizer& tokenizer_;
  const OpenAiEnvelope envelope_;
  ChatStream message_;
  std::string text_;  // not parsed yet; used when not streaming
  std::vector<GeneratedToken> tokens_;
  Completion completion_;
  bool began_ = false;
};

// "auto", "none", "required", or {"type": "function", "function": {"name": ...}}, which leaves only that tool to
// require.
Status ReadToolChoice(const Json& choice, ChatInput* input) {
  constexpr const char* kField = "tool_choice";
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none" || choice == "required") {
    input->tool_choice = choice == "none" ? ToolChoice::kNone : ToolChoice::kRequired;
    return {};
  }
  FieldReader fields(choice, "tool_choice.");
  if (!choice.is_object() || fields.At("type") != "function") {
    return InvalidArgument("must be \"auto\", \"none\", \"required\" or an object of type \"function\"", kField);
  }
  Json function;
  std::string name;
  fields.Object("function", &function);
  if (function.is_object()) FieldReader(function).String("name", &name);
  for (const Json& tool : input->tools) {
    const bool chosen = tool.is_object() && tool.contains("function") && tool["function"].is_object() &&
                        tool["function"].contains("name") && tool["function"]["name"] == name;
    if (!chosen) continue;
    input->tools = Json::array({Json(tool)});
    input->tool_choice = ToolChoice::kRequired;
    return {};
  }
  return InvalidArgument("must name one of the tools", "tool_choice.function.name");
}

Status ReadChatInput(const Json& body, ChatInput* input) {
  FieldReader fields(body);
  if (fields.status().ok() && !fields.Has("messages")) fields.Fail("messages", "is required");
  fields.Array("messages", &input->messages);
  fields.Array("tools", &input->tools);
  fields.Bool("parallel_tool_calls", &input->parallel_tool_calls);
  fields.Object("chat_template_kwargs", &input->template_arguments);
  std::string effort;
  fields.String("reasoning_effort", &effort);
  if (effort == "none") {
    input->template_arguments["enable_thinking"] = false;
  } else if (!effort.empty()) {
    input->template_arguments["reasoning_effort"] = effort;
  }
  if (!fields.status().ok()) return fields.status();
  if (const Status status = ReadToolChoice(fields.At("tool_choice"), input); !status.ok()) return status;
  return ReadOutputFormat(body, input);
}

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

Result<Call> ParseChatCompletion(const Json& body, const ApiContext& context) {
  Call call;
  ChatInput input;
  ChatOptions options;
  if (const Status status = ReadChatInput(body, &input); !status.ok()) return status;
  if (const Status status = ReadStreamFields(body, &options.stream, &options.include_usage); !status.ok())
    return status;
  if (const Status status = ReadLogprobs(body, &options.logprobs, &call.generation); !status.ok()) return status;
  if (const Status status = ReadGenerationFields(body, context, &call.generation); !status.ok()) return status;
  const Status limit = ReadMaxTokens(body, {"max_completion_tokens", "max_tokens", "n_predict"},
                                     MaxTokensLimits::kFromMinusOne, context, &call.generation);
  if (!limit.ok()) return limit;
  Result<std::shared_ptr<const ChatParser>> parser = PrepareChat(input, context, &call.generation);
  if (!parser.ok()) return parser.status();
  call.stream = options.stream;
  call.writer = std::make_unique<ChatCompletionWriter>(options, std::move(*parser), context);
  return call;
}

}  // namespace outrider
