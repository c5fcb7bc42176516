#include "http/json_answer.h"

#include <new>
#include <string>

#include "api/protocol.h"
#include "base/log.h"

namespace outrider {

using httplib::Request;
using httplib::Response;

void SendJson(Response& response, const Json& body, int status) {
  response.status = status;
  response.set_content(DumpJson(body) + "\n", "application/json");
}

void SendResult(const Request& request, Response& response, const Result<Json>& result) {
  result.ok() ? SendJson(response, *result) : SendError(request, response, result.status());
}

Json ErrorJson(std::string_view path, const Status& error, int status) {
  return path.starts_with("/v1/messages") ? AnthropicError(error) : OpenAiError(error, status);
}

void SendError(const Request& request, Response& response, const Status& error, int status) {
  SendJson(response, ErrorJson(request.path, error, status), status);
}

void SendError(const Request& request, Response& response, const Status& error) {
  SendError(request, response, error, HttpStatus(error.code()));
}

void SendLimit(const Request& request, Response& response, int retry_after_seconds, const Status& error) {
  response.set_header("Retry-After", std::to_string(retry_after_seconds));
  SendError(request, response, error);
}

void SendException(const Request& request, Response& response, std::exception_ptr exception) {
  std::string what = "unknown exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    LogError("{} {} failed: out of memory", request.method, request.path);
    return SendError(request, response, Unavailable("the server has not enough memory for this request"));
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  LogError("{} {} failed: {}", request.method, request.path, what);
  SendError(request, response, Internal("the server failed to answer this request; its log says why"));
}

}  // namespace outrider
