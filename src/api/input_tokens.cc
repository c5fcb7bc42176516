#include "api/input_tokens.h"

#include <limits>

#include "api/chat_input.h"
#include "api/messages_input.h"
#include "api/responses_input.h"
#include "api/turn_input.h"

namespace outrider {
namespace {

// `conversation`: the field that the client wrote it in.
Result<size_t> CountTokens(const ChatInput& input, const char* conversation, const ApiContext& context) {
  ApiContext unlimited = context;
  unlimited.sequence_length = std::numeric_limits<Pos>::max();
  GenerationRequest request;
  const Result<std::shared_ptr<const ChatParser>> parser = PrepareTurns(input, conversation, unlimited, &request);
  if (!parser.ok()) return parser.status();
  return request.prompt.size();
}

}  // namespace

Result<Json> ChatInputTokens(const Json& body, const ApiContext& context) {
  const Result<ChatInput> input = ReadChatInput(body);
  if (!input.ok()) return input.status();
  const Result<size_t> count = CountTokens(*input, "messages", context);
  if (!count.ok()) return count.status();
  return Json{{"object", "response.input_tokens"}, {"input_tokens", *count}};
}

Result<Json> ResponseInputTokens(const Json& body, const ApiContext& context) {
  const Result<ResponsesInput> input = ReadResponsesInput(body, /*owner=*/"", context);
  if (!input.ok()) return input.status();
  const Result<size_t> count = CountTokens(input->chat, "input", context);
  if (!count.ok()) return count.status();
  return Json{{"object", "response.input_tokens"}, {"input_tokens", *count}};
}

Result<Json> MessageInputTokens(const Json& body, const ApiContext& context) {
  const Result<ChatInput> input = ReadMessagesInput(body);
  if (!input.ok()) return input.status();
  const Result<size_t> count = CountTokens(*input, "messages", context);
  if (!count.ok()) return count.status();
  return Json{{"input_tokens", *count}};
}

}  // namespace outrider
