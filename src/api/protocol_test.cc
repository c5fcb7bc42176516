// What all protocols have in common.
#include "api/protocol.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "base/log.h"

namespace outrider {
namespace {

struct Protocol {
  const char* name;
  ParseRequest parse;
  const char* body;         // a request
  const char* with_schema;  // fields that ask for an answer with a schema
  const char* with_tool;    // fields with a tool whose parameters are of a schema; "" if the protocol has no tools
};

// The schemas have a pattern that cannot be enforced, which is logged when a schema is read.
constexpr Protocol kProtocols[] = {
    {"chat", ParseChatCompletion, R"({"messages": [{"role": "user", "content": "hi"}]})",
     R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"pattern": "^http"}}}})",
     R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
         "properties": {"url": {"pattern": "^http"}}}}}]})"},
    {"completions", ParseTextCompletion, R"({"prompt": "hi"})", R"({"json_schema": {"pattern": "^http"}})", ""},
    {"responses", ParseResponse, R"({"input": "hi"})",
     R"({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"pattern": "^http"}}}})",
     R"({"tools": [{"type": "function", "name": "f", "parameters": {"type": "object",
         "properties": {"url": {"pattern": "^http"}}}}]})"},
    {"messages", ParseMessages, R"({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})",
     R"({"output_config": {"format": {"type": "json_schema", "schema": {"pattern": "^http"}}}})",
     R"({"tools": [{"name": "f", "input_schema": {"type": "object",
         "properties": {"url": {"pattern": "^http"}}}}]})"},
    {"llama", ParseLlamaCompletion, R"({"prompt": "hi"})", R"({"json_schema": {"pattern": "^http"}})", ""},
};

TEST(ProtocolTest, RequestsBelongToTheirOwner) {
  const TestContext context;
  for (const Protocol& protocol : kProtocols) {
    const Result<ParsedRequest> request = protocol.parse(Json::parse(protocol.body), "anna", context.api);
    ASSERT_TRUE(request.ok()) << protocol.name << ": " << request.status().message();
    EXPECT_EQ(request->generation.owner, "anna") << protocol.name;
  }
}

// How many schemas were read while a request was parsed.
int SchemasRead(const Protocol& protocol, const char* fields, const char* chat_template) {
  const TestContext context(chat_template);
  Json body = Json::parse(protocol.body);
  body.update(Json::parse(fields));
  SetLogLevel(LogLevel::kDebug);
  testing::internal::CaptureStderr();
  const Result<ParsedRequest> request = protocol.parse(body, "", context.api);
  const std::string log = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kInfo);
  EXPECT_TRUE(request.ok()) << protocol.name << ": " << request.status().message();
  EXPECT_NE(request->generation.sampling.grammar.text, "") << protocol.name;
  int read = 0;
  for (size_t at = log.find("not enforced"); at != std::string::npos; at = log.find("not enforced", at + 1)) ++read;
  return read;
}

TEST(ProtocolTest, EachSchemaIsReadOnce) {
  for (const Protocol& protocol : kProtocols) {
    for (const char* chat_template : {"", kSmolTemplate}) {
      EXPECT_EQ(SchemasRead(protocol, protocol.with_schema, chat_template), 1) << protocol.name;
      if (protocol.with_tool[0] != 0) {
        EXPECT_EQ(SchemasRead(protocol, protocol.with_tool, chat_template), 1) << protocol.name;
      }
    }
  }
}

}  // namespace
}  // namespace outrider
