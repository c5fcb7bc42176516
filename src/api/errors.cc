#include <fmt/format.h>

#include "api/protocol.h"

namespace outrider {
namespace {

// SDKs show the message alone, so the field's name must be in it.
std::string FullMessage(const Status& status) {
  return status.field().empty() ? status.message() : fmt::format("{}: {}", status.field(), status.message());
}

const char* OpenAiType(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return "invalid_request_error";
    case StatusCode::kUnauthenticated:
      return "authentication_error";
    case StatusCode::kNotFound:
      return "not_found_error";
    case StatusCode::kResourceExhausted:
      return "rate_limit_error";
    case StatusCode::kUnsupported:
      return "not_supported_error";
    case StatusCode::kUnavailable:
      return "unavailable_error";
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return "server_error";
}

const char* AnthropicType(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported:
      return "invalid_request_error";
    case StatusCode::kUnauthenticated:
      return "authentication_error";
    case StatusCode::kNotFound:
      return "not_found_error";
    case StatusCode::kResourceExhausted:
      return "rate_limit_error";
    case StatusCode::kUnavailable:
      return "overloaded_error";
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return "api_error";
}

Json OpenAiCode(StatusCode code) {
  if (code == StatusCode::kUnauthenticated) return "invalid_api_key";
  if (code == StatusCode::kResourceExhausted) return "rate_limit_exceeded";
  return nullptr;
}

}  // namespace

Json OpenAiError(const Status& status) {
  return {{"error",
           {{"message", FullMessage(status)},
            {"type", OpenAiType(status.code())},
            {"param", status.field().empty() ? Json() : Json(status.field())},
            {"code", OpenAiCode(status.code())}}}};
}

Json AnthropicError(const Status& status) {
  return {{"type", "error"}, {"error", {{"type", AnthropicType(status.code())}, {"message", FullMessage(status)}}}};
}

int HttpStatus(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kResourceExhausted:
      return 429;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kUnavailable:
      return 503;
    case StatusCode::kInternal:
      return 500;
  }
  return 500;
}

}  // namespace outrider
