#include "api/output_format.h"

#include <gtest/gtest.h>

#include "chat/chat_test_util.h"

namespace outrider {
namespace {

TEST(OutputFormatTest, AllWaysToAskForJson) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "null"},
      {R"({"response_format": {"type": "text"}})", "null"},
      {R"({"response_format": {"type": "json_object"}})", R"({"type": "object"})"},
      {R"({"response_format": {"type": "json_object", "schema": {"type": "array"}}})", R"({"type": "array"})"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "null"}}}})",
       R"({"type": "null"})"},
      {R"({"json_schema": {}})", R"({"type": "object"})"},
  };
  for (const auto& [body, schema] : cases) {
    ChatInput input;
    EXPECT_TRUE(ReadOutputFormat(Json::parse(body), &input).ok()) << body;
    EXPECT_EQ(input.json_schema ? input.json_schema->json() : Json(), Json::parse(schema)) << body;
  }
}

TEST(OutputFormatTest, NonsenseIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"response_format": "json"})", "response_format"},
      {R"({"response_format": {}})", "response_format.type"},
      {R"({"response_format": {"type": "xml"}})", "response_format.type"},
      {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {}}})", "response_format.json_schema.schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": 5}}})",
       "response_format.json_schema.schema"},
      {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "wizard"}}}})",
       "response_format.json_schema.schema"},
      {R"({"json_schema": 5})", "json_schema"},
      {R"({"json_schema": {"type": "wizard"}})", "json_schema"},
      {R"({"grammar": 5})", "grammar"},
      {R"({"grammar": "root ::= x", "json_schema": {}})", "grammar"},
  };
  for (const auto& [body, field] : cases) {
    ChatInput input;
    EXPECT_EQ(ReadOutputFormat(Json::parse(body), &input).field(), field) << body;
  }
}

TEST(OutputFormatTest, SetGrammarTakesEither) {
  GenerationRequest request;
  ChatInput format;
  format.grammar = "root ::= \"x\"";
  SetGrammar(format, &request);
  EXPECT_EQ(request.sampling.grammar.text, "root ::= \"x\"");
  format.grammar = "";
  format.json_schema = Schema({{"type", "boolean"}});
  SetGrammar(format, &request);
  EXPECT_NE(request.sampling.grammar.text.find("true"), std::string::npos);
  request.sampling.grammar = {};
  request.sampling.grammar.text = "root ::= \"the server's\"";
  SetGrammar(ChatInput(), &request);
  EXPECT_EQ(request.sampling.grammar.text, "root ::= \"the server's\"") << "its default stays";
}

}  // namespace
}  // namespace outrider
