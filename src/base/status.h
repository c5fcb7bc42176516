// Status and Result<T>: how expected failures travel.
//
// A Status says what kind of thing went wrong (the code decides the HTTP status or the exit code), in one sentence a
// user can act on, and, for bad requests, which field is to blame. Result<T> is a value or such a Status. Both are
// plain values: copy, move and use them from any thread. Exceptions stay inside the adapters to libraries that throw;
// programmer errors are asserts.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace outrider {

enum class StatusCode {
  kOk,
  kInvalidArgument,    // the request or flag is wrong: 400, exit 2
  kContextExceeded,    // the prompt does not fit the context: 400, with both sizes
  kUnauthenticated,    // no or wrong API key: 401
  kPermissionDenied,   // who asks may not do this: 403
  kNotFound,           // no such endpoint, slot or file: 404
  kResourceExhausted,  // the queue is full, or a limit is reached: 429
  kUnsupported,        // this model or build cannot do it: 501
  kUnavailable,        // shutting down or not ready: 503
  kInternal,           // the engine failed: 500
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message, std::string field = "")
      : code_(code), message_(std::move(message)), field_(std::move(field)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& field() const { return field_; }  // JSON field of the request, "" if none is to blame

  // kContextExceeded: how many tokens there are, and how many fit.
  int64_t tokens() const { return tokens_; }
  int64_t max_tokens() const { return max_tokens_; }

  friend Status ContextExceeded(std::string message, std::string field, int64_t tokens, int64_t max_tokens);

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  std::string field_;
  int64_t tokens_ = 0, max_tokens_ = 0;
};

inline Status InvalidArgument(std::string message, std::string field = "") {
  return {StatusCode::kInvalidArgument, std::move(message), std::move(field)};
}
inline Status ContextExceeded(std::string message, std::string field, int64_t tokens, int64_t max_tokens) {
  Status status(StatusCode::kContextExceeded, std::move(message), std::move(field));
  status.tokens_ = tokens;
  status.max_tokens_ = max_tokens;
  return status;
}
inline Status PermissionDenied(std::string message) {
  return {StatusCode::kPermissionDenied, std::move(message)};
}
inline Status NotFound(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}
inline Status Unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
inline Status Unavailable(std::string message) {
  return {StatusCode::kUnavailable, std::move(message)};
}
inline Status Internal(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::move(value)) {}        // NOLINT(google-explicit-constructor): a value is a result
  Result(Status status) : data_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    assert(!std::get<Status>(data_).ok());
  }

  bool ok() const { return std::holds_alternative<T>(data_); }
  Status status() const { return ok() ? Status() : std::get<Status>(data_); }

  T& operator*() { return std::get<T>(data_); }
  const T& operator*() const { return std::get<T>(data_); }
  T* operator->() { return &std::get<T>(data_); }
  const T* operator->() const { return &std::get<T>(data_); }

 private:
  std::variant<T, Status> data_;
};

}  // namespace outrider
