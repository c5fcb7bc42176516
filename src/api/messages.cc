// POST /v1/messages, Anthropic's protocol.
#include <algorithm>
#include <utility>

#include "api/answer_fields.h"
#include "api/choices.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/messages_input.h"
#include "api/part_writer.h"
#include "api/reasoning_fields.h"
#include "api/turn_input.h"
#include "base/request_budget.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

Json Block(const AnswerPart& part) {
  switch (part.kind) {
    case AnswerPart::Kind::kReasoning:
      // Anthropic signs its reasoning. Clients require the field, but do not check what is in it.
      return {{"type", "thinking"}, {"thinking", part.text}, {"signature", ""}};
    case AnswerPart::Kind::kText:
      return {{"type", "text"}, {"text", part.text}};
    case AnswerPart::Kind::kToolCall:
      break;
  }
  // Arguments that max_tokens cut off are not JSON, but clients require an object.
  const Result<Json> arguments = ParseJson(part.text);
  return {{"type", "tool_use"},
          {"id", part.id},
          {"name", part.call.name},
          {"input", arguments.ok() && arguments->is_object() ? *arguments : Json::object()}};
}

// Anthropic counts what came from the cache beside input_tokens, not in it.
Json Usage(const GenerationTimings& timings) {
  return {{"input_tokens", timings.prompt_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", timings.cached_tokens},
          {"output_tokens", timings.generated_tokens}};
}

class MessageWriter : public PartWriter {
 public:
  MessageWriter(std::shared_ptr<const ChatParser> parser, bool stream, std::string model,
                std::vector<std::string> stop_sequences)
      : PartWriter(std::move(parser), stream),
        id_(MakeId("msg_")),
        model_(std::move(model)),
        stop_sequences_(std::move(stop_sequences)) {}

  Json Whole() override {
    Json content = Json::array();
    for (const AnswerPart& part : parts()) content.push_back(Block(part));
    Json message = Message(completion().timings);
    message["content"] = std::move(content);
    message.update(StopFields());
    return message;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("error", AnthropicError(status)); }

 protected:
  std::string Begin(const GenerationTimings& timings) override {
    return Event("message_start", {{"message", Message(timings)}}) + Event("ping", Json::object());
  }

  std::string Open(AnswerPart* part) override {
    // The id that the model wrote: some templates accept no other form when the result comes back.
    part->id = part->call.id;
    return BlockEvent("content_block_start", *part, {{"content_block", Block(*part)}});
  }

  std::string Grow(const AnswerPart& part, const std::string& text) override {
    switch (part.kind) {
      case AnswerPart::Kind::kReasoning:
        return Delta(part, {{"type", "thinking_delta"}, {"thinking", text}});
      case AnswerPart::Kind::kText:
        return Delta(part, {{"type", "text_delta"}, {"text", text}});
      case AnswerPart::Kind::kToolCall:
        break;
    }
    return Delta(part, {{"type", "input_json_delta"}, {"partial_json", text}});
  }

  std::string Close(const AnswerPart& part) override {
    std::string events;
    if (part.kind == AnswerPart::Kind::kReasoning)
      events = Delta(part, {{"type", "signature_delta"}, {"signature", ""}});
    return events + BlockEvent("content_block_stop", part, Json::object());
  }

  std::string End() override {
    return Event("message_delta", {{"delta", StopFields()}, {"usage", Usage(completion().timings)}}) +
           Event("message_stop", Json::object());
  }

 private:
  static std::string Event(const char* type, const Json& fields) {
    Json data = {{"type", type}};
    data.update(fields);
    return SseEvent(type, data);
  }

  static std::string BlockEvent(const char* type, const AnswerPart& part, const Json& fields) {
    Json data = {{"index", part.index}};
    data.update(fields);
    return Event(type, data);
  }

  static std::string Delta(const AnswerPart& part, const Json& delta) {
    return BlockEvent("content_block_delta", part, {{"delta", delta}});
  }

  Json Message(const GenerationTimings& timings) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", Json::array()},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr},
            {"usage", Usage(timings)}};
  }

  Json StopFields() const {
    const Completion& end = completion();
    if (CutOff(end.reason)) return {{"stop_reason", "max_tokens"}, {"stop_sequence", nullptr}};
    // Templates have stop strings too; those end the turn.
    const bool asked_for =
        std::find(stop_sequences_.begin(), stop_sequences_.end(), end.stop_string) != stop_sequences_.end();
    if (end.reason == FinishReason::kStopString && asked_for) {
      return {{"stop_reason", "stop_sequence"}, {"stop_sequence", end.stop_string}};
    }
    return {{"stop_reason", HasToolCalls() ? "tool_use" : "end_turn"}, {"stop_sequence", nullptr}};
  }

  const std::string id_;
  const std::string model_;
  const std::vector<std::string> stop_sequences_;
};

}  // namespace

Result<ParsedRequest> ParseMessages(const Json& body, const std::string& owner, const ApiContext& context) {
  Result<ChatInput> input = ReadMessagesInput(body);
  if (!input.ok()) return input.status();

  ParsedRequest request;
  request.generation.owner = owner;
  FieldReader reader(body);
  std::vector<std::string> stop_sequences;
  Json metadata;
  reader.Bool("stream", &request.stream);
  reader.StringOrList("stop_sequences", kMaxStopSequences, &stop_sequences);
  reader.Object("metadata", &metadata);
  if (reader.At("stop_sequences").is_string()) reader.Fail("stop_sequences", "must be a list of strings");
  Status status = reader.status();
  if (status.ok() && !reader.Has("max_tokens")) status = InvalidArgument("is required", "max_tokens");
  if (status.ok())
    status = ReadMaxTokens(body, {"max_tokens"}, MaxTokensLimits::kPositive, context, &request.generation);
  if (status.ok()) status = RefuseChoices(body);
  if (status.ok()) status = ReadReasoningFields(body, context, &*input);
  if (status.ok()) status = ReadGenerationFields(body, context, &request.generation);
  if (!status.ok()) return status;
  request.generation.stop.insert(request.generation.stop.end(), stop_sequences.begin(), stop_sequences.end());

  Result<std::shared_ptr<const ChatParser>> parser = PrepareTurns(*input, "messages", context, &request.generation);
  if (!parser.ok()) return parser.status();
  request.writer =
      std::make_unique<MessageWriter>(*parser, request.stream, context.model_name, std::move(stop_sequences));
  return request;
}

}  // namespace outrider
