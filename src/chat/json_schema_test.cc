#include "chat/json_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "chat/chat_test_util.h"

namespace outrider {
namespace {

Result<std::string> JsonSchemaToGrammar(const Json& schema) {
  const Result<JsonSchema> read = JsonSchema::Read(schema, "field");
  if (!read.ok()) return read.status();
  return read->ToGrammar();
}

TEST(JsonSchemaTest, GoodSchemasBecomeGrammars) {
  const Result<std::string> grammar =
      JsonSchemaToGrammar(Json::parse(R"({"type": "string", "enum": ["red", "blue"]})"));
  ASSERT_TRUE(grammar.ok());
  EXPECT_NE(grammar->find("root ::="), std::string::npos);
  EXPECT_NE(grammar->find("blue"), std::string::npos);
}

TEST(JsonSchemaTest, ReferencesAreFollowed) {
  Json tree = Json::parse(R"({"$ref": "#/$defs/node0", "$defs": {}})");
  for (int i = 0; i < 50; ++i) {  // each may hold itself and its neighbour
    const std::string self = fmt::format("#/$defs/node{}", i), next = fmt::format("#/$defs/node{}", (i + 1) % 50);
    tree["$defs"][fmt::format("node{}", i)] = {
        {"type", "object"},
        {"properties", {{"children", {{"type", "array"}, {"items", {{"$ref", self}}}}}, {"next", {{"$ref", next}}}}}};
  }
  EXPECT_TRUE(JsonSchemaToGrammar(tree).ok());
}

TEST(JsonSchemaTest, BadSchemasAreRefused) {
  for (const char* schema : {R"({"type": "wizard"})", R"([])", R"("object")", R"(null)", R"({"$ref": "#/nowhere"})",
                             R"({"type": "string", "pattern": "^[a$"})", R"({"properties": 5})"}) {
    const Result<std::string> grammar = JsonSchemaToGrammar(Json::parse(schema));
    ASSERT_FALSE(grammar.ok()) << schema << "\n" << *grammar;
    EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(grammar.status().field(), "field");
  }
}

TEST(JsonSchemaTest, HostileSchemasAreRefusedOrDoneQuickly) {
  Json wide = {{"type", "object"}}, long_name = {{"type", "object"}}, allowed = {{"type", "object"}};
  for (int i = 0; i < 5000; ++i) wide["properties"][fmt::format("p{}", i)] = Json::object();
  for (int i = 0; i < 250; ++i) allowed["properties"][fmt::format("p{}", i)] = {{"type", "string"}};
  long_name["properties"][std::string(200000, '!')] = Json::object();
  EXPECT_FALSE(JsonSchemaToGrammar(wide).ok());
  EXPECT_FALSE(JsonSchemaToGrammar(long_name).ok());
  EXPECT_TRUE(JsonSchemaToGrammar(allowed).ok());
  Json chain = {{"$ref", "#/$defs/0"}};
  for (int i = 0; i < 20000; ++i) {
    chain["$defs"][std::to_string(i)] = {{"type", "array"}, {"items", {{"$ref", fmt::format("#/$defs/{}", i + 1)}}}};
  }
  chain["$defs"]["20000"] = {{"type", "string"}};
  EXPECT_FALSE(JsonSchemaToGrammar(chain).ok());
  Json patterns;
  for (int i = 0; i < 20000; ++i) {
    patterns["anyOf"].push_back({{"type", "string"}, {"pattern", fmt::format("^{}$", i)}});
  }
  EXPECT_FALSE(JsonSchemaToGrammar(patterns).ok());
  const std::string nested = "^" + std::string(500, '(') + std::string(500, ')') + "$";
  JsonSchemaToGrammar({{"type", "string"}, {"pattern", nested}}).ok();  // either answer is fine; a crash is not
  EXPECT_FALSE(JsonSchemaToGrammar({{"type", "string"}, {"pattern", std::string(100000, '(')}}).ok());
}

// llama-common converts what an "allOf" refers to again at each place: for ever if that leads back, and 50 times 50
// times 50 … times if it leads on.
TEST(JsonSchemaTest, AllOfCannotMultiplyTheWork) {
  const auto object_of = [](int places, const std::string& target) {
    Json object = {{"type", "object"}};
    for (int i = 0; i < places; ++i) {
      const Json reference = {{"$ref", target}};
      object["properties"][fmt::format("p{}", i)] = {{"allOf", Json::array({reference})}};
    }
    return object;
  };
  EXPECT_FALSE(JsonSchemaToGrammar({{"$ref", "#/$defs/a"}, {"$defs", {{"a", object_of(1, "#/$defs/a")}}}}).ok());

  Json tower = {{"$ref", "#/$defs/0"}};
  for (int i = 0; i < 6; ++i) {
    tower["$defs"][std::to_string(i)] = object_of(50, fmt::format("#/$defs/{}", i + 1));
  }
  tower["$defs"]["6"] = {{"type", "object"}, {"properties", {{"x", {{"type", "string"}}}}}};
  EXPECT_FALSE(JsonSchemaToGrammar(tower).ok());

  Json choice = {{"type", "object"}};  // the properties of an "anyOf" in an "allOf" are all optional
  for (int i = 0; i < 100; ++i) choice["properties"][fmt::format("p{}", i)] = {{"type", "string"}};
  Json alternatives = Json::array();
  for (int i = 0; i < 100; ++i) alternatives.push_back({{"$ref", "#/$defs/choice"}});
  const Json any = {{"anyOf", alternatives}};
  EXPECT_FALSE(JsonSchemaToGrammar({{"allOf", Json::array({any})}, {"$defs", {{"choice", choice}}}}).ok());

  const Json one = {{"$ref", "#/$defs/choice"}};
  EXPECT_TRUE(JsonSchemaToGrammar({{"allOf", Json::array({one})}, {"$defs", {{"choice", choice}}}}).ok());
}

TEST(JsonSchemaTest, CirclesOfReferencesAreRefused) {
  const Json circle = Json::parse(R"({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}})");
  const Json reference = {{"$ref", "#/$defs/a"}};
  EXPECT_FALSE(JsonSchemaToGrammar({{"$ref", "#/$defs/a"}, {"$defs", circle}}).ok());
  EXPECT_FALSE(JsonSchemaToGrammar({{"allOf", Json::array({reference})}, {"$defs", circle}}).ok());
  const Json chain = Json::parse(R"({"a": {"$ref": "#/$defs/b"}, "b": {"enum": ["red"]}})");
  const Result<std::string> grammar = JsonSchemaToGrammar({{"allOf", Json::array({reference})}, {"$defs", chain}});
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  EXPECT_NE(grammar->find("red"), std::string::npos);
}

TEST(JsonSchemaTest, WhatWasReadIsWhatTheGrammarIsMadeOf) {
  const JsonSchema schema = Schema(Json::parse(R"({"type": "string", "pattern": "^http"})"));
  EXPECT_EQ(schema.json(), Json::parse(R"({"type": "string", "description": "pattern: ^http", "minLength": 0})"));
  EXPECT_EQ(Json::parse(schema.text()), schema.json());
  EXPECT_EQ(schema.ToGrammar(), Schema({{"type", "string"}}).ToGrammar());
  EXPECT_EQ(JsonSchema::AnyObject().ToGrammar(), Schema({{"type", "object"}}).ToGrammar());
}

TEST(PatternTest, InvalidOnesAreRefusedWhereverAStringHasThem) {
  const std::string invalid = R"({"type": "string", "pattern": "^[a$"})";
  for (const std::string schema :
       {R"({"type": "array", "items": @})", R"({"items": [{"type": "null"}, @]})",
        R"({"anyOf": [{"type": "null"}, @]})", R"({"properties": {"a": @}})",
        R"({"type": "object", "additionalProperties": @})", R"({"$ref": "#/$defs/a", "$defs": {"a": @}})",
        R"({"type": ["string", "null"], "pattern": "^[a$"})"}) {
    std::string text = schema;
    if (const size_t at = text.find('@'); at != std::string::npos) text.replace(at, 1, invalid);
    const Result<std::string> grammar = JsonSchemaToGrammar(Json::parse(text));
    ASSERT_FALSE(grammar.ok()) << text;
    EXPECT_NE(grammar.status().message().find("^[a$"), std::string::npos) << grammar.status().message();
  }
  EXPECT_TRUE(JsonSchemaToGrammar(Json::parse(R"({"type": "integer", "pattern": "^[a$"})")).ok());
}

TEST(PatternTest, UsableOnesStay) {
  for (const char* text :
       {R"({"type": "string", "pattern": "^[a-z]+$"})", R"({"pattern": "^(?:a|b){2,3}$"})", R"({"pattern": ""})"}) {
    const Json schema = Json::parse(text);
    EXPECT_EQ(Schema(schema).json(), schema) << text;
  }
}

TEST(PatternTest, UnusableOnesMoveToTheDescription) {
  for (const char* pattern : {"https?://", "^(?=a)b$", "^\\d+$", "^a{x}$"}) {
    const Json usable = Schema({{"type", "string"}, {"pattern", pattern}}).json();
    EXPECT_FALSE(usable.contains("pattern")) << pattern;
    EXPECT_EQ(usable["description"], std::string("pattern: ") + pattern);
  }
  const Json described = Schema({{"description", "A link"}, {"pattern", "^http"}}).json();
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
  EXPECT_EQ(Schema(schema).json(), expected);
}

TEST(PatternTest, WithoutATypeTheValueIsStillAString) {
  const Result<std::string> grammar = JsonSchemaToGrammar({{"pattern", "^http"}});
  ASSERT_TRUE(grammar.ok());
  EXPECT_EQ(grammar->find("object"), std::string::npos) << *grammar;
}

// A reference may lead into what otherwise is data.
TEST(PatternTest, AnInvalidPatternThatIsReachedByAReferenceOnlyIsRefused) {
  const Json hidden = {{"$ref", "#/default"}, {"default", {{"type", "string"}, {"pattern", "^(a$"}}}};
  const Result<JsonSchema> read = JsonSchema::Read(hidden, "json_schema");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().field(), "json_schema");
}

TEST(PatternTest, NoClientCanWriteToStandardError) {
  const std::string text = R"({"type": "object", "properties": {"url": {"type": "string", "pattern": "^http"}}})";
  testing::internal::CaptureStderr();
  EXPECT_TRUE(JsonSchemaToGrammar(Json::parse(text)).ok());
  for (const char* source : {"", kSmolTemplate}) {
    ChatInput input = UserSays("Hi");
    input.json_schema = Schema(Json::parse(text));
    EXPECT_TRUE(MakeTemplate(source)->Apply(input).ok());
    input.json_schema.reset();
    input.tools = {Tool({{"name", "f"}, {"parameters", Json::parse(text)}})};
    EXPECT_TRUE(MakeTemplate(source)->Apply(input).ok());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace outrider
