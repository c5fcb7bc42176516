#include "chat/check.h"

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

TEST(CheckTest, PartsThatCannotBeReadAreRefusedInPlainWords) {
  const Status status =
      ApplyMessages(R"([{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}])");
  EXPECT_NE(status.message().find("text, image_url and input_audio are"), std::string::npos);
}

TEST(CheckTest, TooManyMessages) {
  ChatInput input;
  for (int i = 0; i < 10001; ++i) input.messages.push_back({{"role", "user"}, {"content", "x"}});
  EXPECT_EQ(CheckChatInput(input).field(), "messages");
}

TEST(CheckTest, TooManyTools) {
  ChatInput input = UserSays("hi");
  input.tools.assign(256, WeatherTool());
  EXPECT_TRUE(CheckChatInput(input).ok());
  input.tools.push_back(WeatherTool());
  EXPECT_EQ(CheckChatInput(input).field(), "tools");
}

TEST(CheckTest, BadToolsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "tools[0]"},
      {R"(5)", "tools[0]"},
      {R"({"type": "retrieval"})", "tools[0]"},
      {R"({"type": "function"})", "tools[0].function"},
      {R"({"type": "function", "function": {}})", "tools[0].function.name"},
      {R"({"type": "function", "function": {"name": ""}})", "tools[0].function.name"},
      {R"({"type": "function", "function": {"name": 5}})", "tools[0].function.name"},
      {R"({"type": "function", "function": {"name": "f", "description": 5}})", "tools[0].function.description"},
      {R"({"type": "function", "function": {"name": "f", "parameters": []}})", "tools[0].function.parameters"},
      {R"({"type": "function", "function": {"name": "f", "parameters": {"type": "wizard"}}})",
       "tools[0].function.parameters"},
  };
  for (const auto& [tool, field] : cases) {
    const Status status = ReadTool(Json::parse(tool), "tools[0]").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << tool;
    EXPECT_EQ(status.field(), field) << tool << ": " << status.message();
  }
}

TEST(CheckTest, TheSchemasOfARequestAreCountedTogether) {
  Json parameters = {{"type", "object"}};
  for (int i = 0; i < 240; ++i) parameters["properties"][std::to_string(i)] = {{"type", "string"}};
  ChatInput input = UserSays("hi");
  input.tools = {Tool({{"name", "one"}, {"parameters", parameters}})};
  EXPECT_TRUE(CheckChatInput(input).ok());
  input.tools.push_back(Tool({{"name", "two"}, {"parameters", parameters}}));
  EXPECT_EQ(CheckChatInput(input).field(), "tools");
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
  both.json_schema = JsonSchema::AnyObject();
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

}  // namespace
}  // namespace outrider
