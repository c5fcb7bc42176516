#include <gtest/gtest.h>

#include "api/protocol.h"

namespace outrider {
namespace {

TEST(ErrorsTest, OpenAiShape) {
  const Json error = OpenAiError(InvalidArgument("must be a number", "temperature"));
  EXPECT_EQ(error,
            Json::parse(R"({"error": {"message": "temperature: must be a number", "type": "invalid_request_error",
                                  "param": "temperature", "code": 400}})"));
  EXPECT_EQ(OpenAiError(Internal("x"))["error"]["type"], "server_error");
  EXPECT_TRUE(OpenAiError(Internal("x"))["error"]["param"].is_null());
  EXPECT_EQ(OpenAiError({StatusCode::kUnauthenticated, "x"})["error"]["type"], "authentication_error");
  EXPECT_EQ(OpenAiError({StatusCode::kResourceExhausted, "x"})["error"]["type"], "rate_limit_error");
  EXPECT_EQ(OpenAiError(NotFound("x"))["error"]["type"], "not_found_error");
  EXPECT_EQ(OpenAiError(Unsupported("x"))["error"]["type"], "not_supported_error");
  EXPECT_EQ(OpenAiError(Unavailable("x"))["error"]["type"], "unavailable_error");
  EXPECT_EQ(OpenAiError({StatusCode::kUnauthenticated, "x"})["error"]["code"], 401);
  EXPECT_EQ(OpenAiError({StatusCode::kResourceExhausted, "x"})["error"]["code"], 429);
  EXPECT_EQ(OpenAiError(InvalidArgument("x"), 405)["error"]["code"], 405) << "the code is the status of the answer";
}

TEST(ErrorsTest, APromptThatDoesNotFitIsToldInWordsThatClientsKnow) {
  const Status status = ContextExceeded("the prompt exceeds the available context size", "messages", 5000, 4096);
  EXPECT_EQ(OpenAiError(status)["error"],
            Json::parse(R"({"message": "messages: the prompt exceeds the available context size",
                            "type": "exceed_context_size_error", "param": "messages", "code": 400,
                            "n_prompt_tokens": 5000, "n_ctx": 4096})"));
  EXPECT_EQ(HttpStatus(status.code()), 400);
  const Json anthropic = AnthropicError(status)["error"];
  EXPECT_EQ(anthropic["type"], "invalid_request_error");
  EXPECT_TRUE(anthropic["message"].get<std::string>().starts_with("prompt is too long: 5000 tokens > 4096 maximum"));
}

TEST(ErrorsTest, AnthropicShape) {
  EXPECT_EQ(
      AnthropicError(InvalidArgument("is required", "messages")),
      Json::parse(
          R"({"type": "error", "error": {"type": "invalid_request_error", "message": "messages: is required"}})"));
  EXPECT_EQ(AnthropicError(Unavailable("x"))["error"]["type"], "overloaded_error");
  EXPECT_EQ(AnthropicError(Internal("x"))["error"]["type"], "api_error");
  EXPECT_EQ(AnthropicError({StatusCode::kUnauthenticated, "x"})["error"]["type"], "authentication_error");
  EXPECT_EQ(AnthropicError({StatusCode::kResourceExhausted, "x"})["error"]["type"], "rate_limit_error");
  EXPECT_EQ(AnthropicError(NotFound("x"))["error"]["type"], "not_found_error");
  EXPECT_EQ(AnthropicError(Unsupported("x"))["error"]["type"], "invalid_request_error");
}

TEST(ErrorsTest, HttpStatusOfEachCode) {
  EXPECT_EQ(HttpStatus(StatusCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatus(StatusCode::kUnauthenticated), 401);
  EXPECT_EQ(HttpStatus(StatusCode::kNotFound), 404);
  EXPECT_EQ(HttpStatus(StatusCode::kResourceExhausted), 429);
  EXPECT_EQ(HttpStatus(StatusCode::kInternal), 500);
  EXPECT_EQ(HttpStatus(StatusCode::kUnsupported), 501);
  EXPECT_EQ(HttpStatus(StatusCode::kUnavailable), 503);
}

}  // namespace
}  // namespace outrider
