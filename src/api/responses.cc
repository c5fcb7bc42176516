// OpenAI's /v1/responses.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <utility>

#include "api/answer_fields.h"
#include "api/choices.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/openai_common.h"
#include "api/part_writer.h"
#include "api/reasoning_fields.h"
#include "api/response_memory.h"
#include "api/responses_input.h"
#include "api/turn_input.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

// 0.8f as 0.8 rather than 0.800000011920929.
double ShortestDouble(float value) {
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

const char* TextType(const AnswerPart& part) {
  return part.kind == AnswerPart::Kind::kReasoning ? "reasoning_text" : "output_text";
}

Json ContentPart(const AnswerPart& part) {
  Json content = {{"type", TextType(part)}, {"text", part.text}};
  if (part.kind == AnswerPart::Kind::kText)
    content.update({{"annotations", Json::array()}, {"logprobs", Json::array()}});
  return content;
}

// `content`: the content part of a text or reasoning item.
Json OutputItem(const AnswerPart& part, const char* status, const Json& content) {
  switch (part.kind) {
    case AnswerPart::Kind::kReasoning:
      return {
          {"id", part.id}, {"type", "reasoning"}, {"status", status}, {"summary", Json::array()}, {"content", content}};
    case AnswerPart::Kind::kText:
      return {{"id", part.id}, {"type", "message"}, {"status", status}, {"role", "assistant"}, {"content", content}};
    case AnswerPart::Kind::kToolCall:
      break;
  }
  return {{"id", part.id},          {"type", "function_call"}, {"status", status},
          {"arguments", part.text}, {"call_id", part.call.id}, {"name", part.call.name}};
}

Json FinishedItem(const AnswerPart& part) {
  return OutputItem(part, part.cut_off ? "incomplete" : "completed", Json::array({ContentPart(part)}));
}

// Called with the answer and with what the model said.
using RememberAnswer = std::function<void(const Json& response, const ChatMessage& message)>;

class ResponsesWriter : public PartWriter {
 public:
  // `response`: the answer with all that is known before generation. `remember`: null = the answer is forgotten.
  ResponsesWriter(std::shared_ptr<const ChatParser> parser, const AnswerOptions& options, const Tokenizer& tokenizer,
                  Json response, RememberAnswer remember)
      : PartWriter(std::move(parser), options.stream),
        tokenizer_(tokenizer),
        response_(std::move(response)),
        timings_per_token_(options.timings_per_token),
        remember_(std::move(remember)) {}

  Json Whole() override {
    Json response = response_;
    const bool cut_off = CutOff(completion().reason);
    response["status"] = cut_off ? "incomplete" : "completed";
    if (cut_off) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    for (const AnswerPart& part : parts()) response["output"].push_back(FinishedItem(part));
    response["usage"] = Usage();
    return response;
  }

  std::string ErrorEvent(const Status& status) const override {
    const Json error = OpenAiError(status)["error"];
    const Json code = status.code() == StatusCode::kResourceExhausted ? "rate_limit_exceeded" : "server_error";
    Json response = response_;
    response["status"] = "failed";
    response["error"] = {{"code", code}, {"message", error["message"]}};
    return Event(next_sequence_number_, "error",
                 {{"code", code}, {"message", error["message"]}, {"param", error["param"]}}) +
           Event(next_sequence_number_ + 1, "response.failed", {{"response", response}});
  }

 protected:
  std::string Begin(const GenerationTimings&) override {
    std::string events = Event("response.created", {{"response", response_}});
    return events += Event("response.in_progress", {{"response", response_}});
  }

  std::string Progress(const PromptProgress& progress) override {
    return Event("response.in_progress", {{"response", response_}, {"prompt_progress", ProgressJson(progress)}});
  }

  std::string Open(AnswerPart* part) override {
    const bool is_call = part->kind == AnswerPart::Kind::kToolCall;
    part->id = MakeId(is_call ? "fc_" : part->kind == AnswerPart::Kind::kText ? "msg_" : "rs_");
    std::string events =
        ItemEvent("response.output_item.added", *part, OutputItem(*part, "in_progress", Json::array()));
    if (!is_call) events += PartEvent("response.content_part.added", *part, {{"part", ContentPart(*part)}});
    return events;
  }

  std::string Grow(const AnswerPart& part, const std::string& text) override {
    Json fields = {{"delta", text}};
    if (timings_per_token_) fields["timings"] = TimingsJson(timings());
    return PartEvent(GrowthEvent(part) + ".delta", part, fields);
  }

  std::string Close(const AnswerPart& part) override {
    std::string events;
    if (part.kind == AnswerPart::Kind::kToolCall) {
      events = PartEvent(GrowthEvent(part) + ".done", part, {{"name", part.call.name}, {"arguments", part.text}});
    } else {
      events = PartEvent(GrowthEvent(part) + ".done", part, {{"text", part.text}});
      events += PartEvent("response.content_part.done", part, {{"part", ContentPart(part)}});
    }
    return events += ItemEvent("response.output_item.done", part, FinishedItem(part));
  }

  std::string End() override {
    const Json response = Whole();
    if (remember_) remember_(response, message());
    return Event("response." + response["status"].get<std::string>(),
                 {{"response", response}, {"timings", TimingsJson(completion())}});
  }

 private:
  // What the events of a growing part begin with.
  static std::string GrowthEvent(const AnswerPart& part) {
    if (part.kind == AnswerPart::Kind::kToolCall) return "response.function_call_arguments";
    return fmt::format("response.{}", TextType(part));
  }

  static std::string Event(int sequence_number, const std::string& type, const Json& fields) {
    Json data = {{"type", type}, {"sequence_number", sequence_number}};
    data.update(fields);
    return SseEvent(type, data);
  }

  // Numbers the event: no two calls in one expression, whose order C++ leaves open.
  std::string Event(const std::string& type, const Json& fields) {
    return Event(next_sequence_number_++, type, fields);
  }

  std::string ItemEvent(const std::string& type, const AnswerPart& part, const Json& item) {
    return Event(type, {{"output_index", part.index}, {"item", item}});
  }

  std::string PartEvent(const std::string& type, const AnswerPart& part, const Json& fields) {
    Json data = {{"item_id", part.id}, {"output_index", part.index}};
    if (part.kind != AnswerPart::Kind::kToolCall) data["content_index"] = 0;
    data.update(fields);
    if (type.starts_with("response.output_text.")) data["logprobs"] = Json::array();
    return Event(type, data);
  }

  Json Usage() const {
    const GenerationTimings& timings = completion().timings;
    const int input_tokens = timings.prompt_tokens + timings.cached_tokens;
    const auto reasoning_tokens =
        static_cast<int>(tokenizer_.Tokenize(message().reasoning, /*add_bos=*/false, SpecialTokens::kAsText).size());
    return {{"input_tokens", input_tokens},
            {"input_tokens_details", {{"cached_tokens", timings.cached_tokens}, {"cache_write_tokens", 0}}},
            {"output_tokens", timings.generated_tokens},
            {"output_tokens_details", {{"reasoning_tokens", std::min(reasoning_tokens, timings.generated_tokens)}}},
            {"total_tokens", input_tokens + timings.generated_tokens}};
  }

  const Tokenizer& tokenizer_;
  const Json response_;
  const bool timings_per_token_;
  const RememberAnswer remember_;
  int next_sequence_number_ = 0;
};

Json UnfinishedResponse(const Json& settings, const FieldReader& reader, const ApiContext& context,
                        const GenerationRequest& request) {
  Json response = {{"id", MakeId("resp_")},
                   {"object", "response"},
                   {"created_at", std::time(nullptr)},
                   {"status", "in_progress"},
                   {"background", false},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"max_output_tokens", reader.At("max_output_tokens")},
                   {"model", context.model_name},
                   {"output", Json::array()},
                   {"previous_response_id", nullptr},
                   {"service_tier", "default"},
                   {"store", false},
                   {"temperature", ShortestDouble(request.sampling.temperature)},
                   {"top_logprobs", 0},
                   {"top_p", ShortestDouble(request.sampling.top_p)},
                   {"truncation", "disabled"},
                   {"usage", nullptr}};
  response.update(settings);
  return response;
}

// Remembers the conversation with the answer at its end.
RememberAnswer RememberIn(ResponseMemory* memory, const std::string& owner, const ResponsesInput& input) {
  return [memory, owner, conversation = input.conversation, attachments = input.chat.attachments](
             const Json& response, const ChatMessage& message) {
    ChatInput whole;
    whole.messages = conversation;
    whole.attachments = attachments;
    AddReasoning(message.reasoning, &whole);
    AddTurn("assistant", message.content, &whole);
    for (const ToolCall& call : message.tool_calls) AddToolCall(call, &whole);
    memory->Keep(owner, {std::move(whole.messages), response, std::move(whole.attachments)});
  };
}

}  // namespace

Result<ParsedRequest> ParseResponse(const Json& body, const std::string& owner, const ApiContext& context) {
  Result<ResponsesInput> input = ReadResponsesInput(body, owner, context);
  if (!input.ok()) return input.status();

  ParsedRequest request;
  request.generation.owner = owner;
  const FieldReader reader(body);
  AnswerOptions options;
  Status status = ReadAnswerOptions(body, context, &options);
  if (status.ok())
    status = ReadMaxTokens(body, {"max_output_tokens"}, MaxTokensLimits::kPositive, context, &request.generation);
  if (status.ok()) status = RefuseChoices(body);
  if (status.ok()) status = ReadReasoningFields(body, context, &input->chat);
  if (status.ok()) status = ReadGenerationFields(body, context, &request.generation);
  if (!status.ok()) return status;

  const Result<std::shared_ptr<const ChatParser>> parser =
      PrepareTurns(input->chat, "input", context, &request.generation);
  if (!parser.ok()) return parser.status();
  request.stream = options.stream;
  request.generation.report_progress = options.stream && options.return_progress;
  request.writer = std::make_unique<ResponsesWriter>(
      *parser, options, context.tokenizer, UnfinishedResponse(input->settings, reader, context, request.generation),
      input->store ? RememberIn(context.responses, owner, *input) : nullptr);
  return request;
}

}  // namespace outrider
