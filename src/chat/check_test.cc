#include "chat/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chat/chat_test_util.h"

namespace outrider {
namespace {

Status ApplyMessages(const std::string& messages) {
  ChatInput input;
  input.messages = Json::parse(messages);
  return MakeTemplate("")->Apply(input).status();
}

TEST(CheckTest, BadMessagesNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "messages"},
      {R"({})", "messages"},
      {R"("hi")", "messages"},
      {R"([1])", "messages[0]"},
      {R"([{}])", "messages[0].role"},
      {R"([{"role": 5, "content": "x"}])", "messages[0].role"},
      {R"([{"role": "wizard", "content": "x"}])", "messages[0].role"},
      {R"([{"role": "user"}])", "messages[0].content"},
      {R"([{"role": "user", "content": null}])", "messages[0].content"},
      {R"([{"role": "user", "content": 5}])", "messages[0].content"},
      {R"([{"role": "user", "content": {}}])", "messages[0].content"},
      {R"([{"role": "user", "content": "x"}, {"role": "tool", "content": null}])", "messages[1].content"},
      {R"([{"role": "user", "content": ["x"]}])", "messages[0].content[0]"},
      {R"([{"role": "user", "content": [{"text": "x"}]}])", "messages[0].content[0].type"},
      {R"([{"role": "user", "content": [{"type": "text", "text": 5}]}])", "messages[0].content[0].text"},
      {R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])", "messages[0].content[0].type"},
      {R"([{"role": "user", "content": "x", "name": 5}])", "messages[0].name"},
      {R"([{"role": "user", "content": "x", "tool_calls": []}])", "messages[0].tool_calls"},
      {R"([{"role": "assistant", "tool_calls": "x"}])", "messages[0].tool_calls"},
      {R"([{"role": "assistant", "tool_calls": [5]}])", "messages[0].tool_calls[0]"},
      {R"([{"role": "assistant", "tool_calls": [{"id": 5}]}])", "messages[0].tool_calls[0].id"},
      {R"([{"role": "assistant", "tool_calls": [{"type": "x"}]}])", "messages[0].tool_calls[0].type"},
      {R"([{"role": "assistant", "tool_calls": [{}]}])", "messages[0].tool_calls[0].function"},
      {R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])", "messages[0].tool_calls[0].function.name"},
      {R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": ""}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
  };
  for (const auto& [messages, field] : cases) {
    const Status status = ApplyMessages(messages);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << messages;
    EXPECT_EQ(status.field(), field) << messages << ": " << status.message();
  }
}

TEST(CheckTest, ImagesAreRefusedInPlainWords) {
  const Status status =
      ApplyMessages(R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])");
  EXPECT_NE(status.message().find("this model takes text only"), std::string::npos);
}

TEST(CheckTest, TooManyMessages) {
  ChatInput input;
  for (int i = 0; i < 10001; ++i) input.messages.push_back({{"role", "user"}, {"content", "x"}});
  EXPECT_EQ(CheckChatInput(input).field(), "messages");
}

TEST(CheckTest, BadToolsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "tools"},
      {R"([5])", "tools[0]"},
      {R"([{"type": "retrieval"}])", "tools[0]"},
      {R"([{"type": "function"}])", "tools[0].function"},
      {R"([{"type": "function", "function": {}}])", "tools[0].function.name"},
      {R"([{"type": "function", "function": {"name": ""}}])", "tools[0].function.name"},
      {R"([{"type": "function", "function": {"name": 5}}])", "tools[0].function.name"},
      {R"([{"type": "function", "function": {"name": "f", "description": 5}}])", "tools[0].function.description"},
      {R"([{"type": "function", "function": {"name": "f", "parameters": []}}])", "tools[0].function.parameters"},
      {R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "wizard"}}}])",
       "tools[0].function.parameters"},
  };
  for (const auto& [tools, field] : cases) {
    ChatInput input = UserSays("hi");
    input.tools = Json::parse(tools);
    const Status status = MakeTemplate("")->Apply(input).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << tools;
    EXPECT_EQ(status.field(), field) << tools << ": " << status.message();
  }
}

TEST(CheckTest, CombinationsThatMakeNoSense) {
  ChatInput required = UserSays("hi");
  required.tool_choice = ToolChoice::kRequired;
  EXPECT_EQ(CheckChatInput(required).field(), "tool_choice");

  ChatInput both = UserSays("hi");
  both.grammar = "root ::= \"x\"";
  both.tools = {WeatherTool()};
  EXPECT_EQ(CheckChatInput(both).field(), "grammar");
  both.tool_choice = ToolChoice::kNone;
  EXPECT_TRUE(CheckChatInput(both).ok());
  both.json_schema = Json::object();
  EXPECT_EQ(CheckChatInput(both).field(), "grammar");
}

TEST(CheckTest, TemplateArgumentsCannotReplaceTheConversation) {
  ChatInput input = UserSays("hi");
  input.template_arguments = {{"messages", 5}};
  EXPECT_EQ(CheckChatInput(input).field(), "chat_template_kwargs.messages");
  input.template_arguments = {{"enable_thinking", "no"}};
  EXPECT_EQ(CheckChatInput(input).field(), "chat_template_kwargs.enable_thinking");
  input.template_arguments = Json::array();
  EXPECT_EQ(CheckChatInput(input).field(), "chat_template_kwargs");
}

TEST(CheckTest, DeepArgumentsOfCallsAreRefused) {
  ChatInput input;
  Json function = {{"name", "f"}, {"arguments", std::string(100000, '[') + std::string(100000, ']')}};
  input.messages = Json::array(
      {{{"role", "assistant"}, {"tool_calls", Json::array({{{"type", "function"}, {"function", function}}})}}});
  EXPECT_EQ(CheckChatInput(input).field(), "messages[0].tool_calls[0].function.arguments");
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
  const std::string nested = "^" + std::string(500, '(') + std::string(500, ')') + "$";
  JsonSchemaToGrammar({{"type", "string"}, {"pattern", nested}}).ok();  // either answer is fine; a crash is not
  EXPECT_FALSE(JsonSchemaToGrammar({{"type", "string"}, {"pattern", std::string(100000, '(')}}).ok());
}

}  // namespace
}  // namespace outrider
