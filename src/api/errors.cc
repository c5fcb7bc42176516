#include <fmt/format.h>

#include "api/protocol.h"

namespace outrider {
namespace {

// SDKs show the message alone, so the field's name must be in it.
std::string FullMessage(const Status& status) {
  return status.field().empty() ? status.message() : fmt::format("{}: {}", status.field(), status.message());
}

// What a failure is called on each wire.
struct WireNames {
  int http_status;
  const char* openai_type;
  const char* anthropic_type;
};

WireNames NamesOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return {200, "server_error", "api_error"};
    case StatusCode::kInvalidArgument:
      return {400, "invalid_request_error", "invalid_request_error"};
    case StatusCode::kContextExceeded:
      return {400, "exceed_context_size_error", "invalid_request_error"};
    case StatusCode::kUnauthenticated:
      return {401, "authentication_error", "authentication_error"};
    case StatusCode::kPermissionDenied:
      return {403, "permission_error", "permission_error"};
    case StatusCode::kNotFound:
      return {404, "not_found_error", "not_found_error"};
    case StatusCode::kResourceExhausted:
      return {429, "rate_limit_error", "rate_limit_error"};
    case StatusCode::kUnsupported:
      return {501, "not_supported_error", "invalid_request_error"};
    case StatusCode::kUnavailable:
      return {503, "unavailable_error", "overloaded_error"};
    case StatusCode::kInternal:
      break;
  }
  return {500, "server_error", "api_error"};
}

// Anthropic's words, by which its clients know that they must shorten the conversation.
std::string AnthropicMessage(const Status& status) {
  if (status.code() != StatusCode::kContextExceeded) return FullMessage(status);
  return fmt::format("prompt is too long: {} tokens > {} maximum; {}", status.tokens(), status.max_tokens(),
                     FullMessage(status));
}

}  // namespace

Json OpenAiError(const Status& status, int http_status) {
  Json error = {{"message", FullMessage(status)},
                {"type", NamesOf(status.code()).openai_type},
                {"param", status.field().empty() ? Json() : Json(status.field())},
                {"code", http_status == 0 ? HttpStatus(status.code()) : http_status}};
  if (status.code() == StatusCode::kContextExceeded) {
    error["n_prompt_tokens"] = status.tokens();
    error["n_ctx"] = status.max_tokens();
  }
  return {{"error", std::move(error)}};
}

Json AnthropicError(const Status& status) {
  return {{"type", "error"},
          {"error", {{"type", NamesOf(status.code()).anthropic_type}, {"message", AnthropicMessage(status)}}}};
}

int HttpStatus(StatusCode code) {
  return NamesOf(code).http_status;
}

}  // namespace outrider
