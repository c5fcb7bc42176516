// Answers in JSON, and errors in the shape that clients of the endpoint expect.
#pragma once

#include <cpp-httplib/httplib.h>

#include <exception>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace outrider {

void SendJson(httplib::Response& response, const Json& body, int status = 200);
void SendResult(const httplib::Request& request, httplib::Response& response, const Result<Json>& result);

Json ErrorJson(std::string_view path, const Status& error, int status = 0);
void SendError(const httplib::Request& request, httplib::Response& response, const Status& error, int status);
void SendError(const httplib::Request& request, httplib::Response& response, const Status& error);

// A limit was hit; the request may be sent again after `retry_after_seconds`.
void SendLimit(const httplib::Request& request, httplib::Response& response, int retry_after_seconds,
               const Status& error);

// A handler threw: 503 if memory was short, which ends this request and no other; else 500.
void SendException(const httplib::Request& request, httplib::Response& response, std::exception_ptr exception);

}  // namespace outrider
