#include "chat/json_schema.h"

#include <gtest/gtest.h>

#include "chat/chat_test_util.h"

namespace outrider {
namespace {

TEST(PatternTest, UsableOnesStay) {
  for (const char* text :
       {R"({"type": "string", "pattern": "^[a-z]+$"})", R"({"pattern": "^(?:a|b){2,3}$"})", R"({"pattern": ""})"}) {
    const Json schema = Json::parse(text);
    EXPECT_EQ(WithoutUnusablePatterns(schema), schema) << text;
  }
}

TEST(PatternTest, UnusableOnesMoveToTheDescription) {
  for (const char* pattern : {"https?://", "^(?=a)b$", "^\\d+$", "^a{x}$"}) {
    const Json usable = WithoutUnusablePatterns({{"type", "string"}, {"pattern", pattern}});
    EXPECT_FALSE(usable.contains("pattern")) << pattern;
    EXPECT_EQ(usable["description"], std::string("pattern: ") + pattern);
  }
  const Json described = WithoutUnusablePatterns({{"description", "A link"}, {"pattern", "^http"}});
  EXPECT_EQ(described["description"], "A link (pattern: ^http)");
}

TEST(PatternTest, OnlySchemasAreTouched) {
  const Json schema = Json::parse(R"({
    "properties": {
      "pattern": {"type": "string"}, "default": {"type": "string", "pattern": "x"}, "c": {"const": {"pattern": "x"}}},
    "$defs": {"enum": {"anyOf": [{"type": "string", "pattern": "x"}]}},
    "default": {"pattern": "x"}})");
  Json expected = schema;
  expected["properties"]["default"] = {{"type", "string"}, {"description", "pattern: x"}, {"minLength", 0}};
  expected["$defs"]["enum"]["anyOf"][0] = {{"type", "string"}, {"description", "pattern: x"}, {"minLength", 0}};
  EXPECT_EQ(WithoutUnusablePatterns(schema), expected);
}

TEST(PatternTest, WithoutATypeTheValueIsStillAString) {
  const Result<std::string> grammar = JsonSchemaToGrammar({{"pattern", "^http"}});
  ASSERT_TRUE(grammar.ok());
  EXPECT_EQ(grammar->find("object"), std::string::npos) << *grammar;
}

TEST(PatternTest, NoClientCanWriteToStandardError) {
  const std::string text = R"({"type": "object", "properties": {"url": {"type": "string", "pattern": "^http"}}})";
  testing::internal::CaptureStderr();
  EXPECT_TRUE(JsonSchemaToGrammar(Json::parse(text)).ok());
  for (const char* source : {"", kSmolTemplate}) {
    ChatInput input = UserSays("Hi");
    input.json_schema = Json::parse(text);
    EXPECT_TRUE(MakeTemplate(source)->Apply(input).ok());
    input.json_schema = nullptr;
    input.tools.push_back(WeatherTool());
    input.tools[0]["function"]["parameters"] = Json::parse(text);
    EXPECT_TRUE(MakeTemplate(source)->Apply(input).ok());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace outrider
