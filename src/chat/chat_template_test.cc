#include "chat/chat_template.h"

#include <gtest/gtest.h>

#include "chat/chat_test_util.h"
#include "chat/tool_fallback.h"

namespace outrider {
namespace {

ChatPrompt Apply(const std::string& source, const ChatInput& input) {
  const auto chat = MakeTemplate(source);
  Result<ChatPrompt> prompt = chat->Apply(input);
  EXPECT_TRUE(prompt.ok()) << prompt.status().field() << ": " << prompt.status().message();
  return prompt.ok() ? *prompt : ChatPrompt{};
}

TEST(ChatTemplateTest, RendersTheModelsOwnTemplate) {
  const ChatPrompt prompt = Apply(kSmolTemplate, UserSays("hi"));
  EXPECT_EQ(prompt.text,
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_TRUE(prompt.parser->plain());
  EXPECT_EQ(prompt.grammar, "");
  EXPECT_EQ(prompt.parser->Parse(" <b>{} \n", false), (ChatMessage{" <b>{} \n", "", {}}));
}

TEST(ChatTemplateTest, NoTemplateMeansChatMl) {
  EXPECT_EQ(Apply("", UserSays("hi")).text, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, GenerationPromptCanBeLeftOut) {
  ChatInput input = UserSays("hi");
  input.add_generation_prompt = false;
  EXPECT_EQ(Apply("", input).text, "<|im_start|>user\nhi<|im_end|>\n");
}

TEST(ChatTemplateTest, DeveloperIsSystemAndPartsAreJoined) {
  ChatInput input;
  input.messages = Json::parse(R"([{"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}])");
  EXPECT_EQ(Apply("", input).text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, LastWordsOfTheAssistantAreContinued) {
  ChatInput input = UserSays("Count");
  input.messages.push_back({{"role", "assistant"}, {"content", "One, "}});
  const ChatPrompt prompt = Apply("", input);
  EXPECT_EQ(prompt.text, "<|im_start|>user\nCount<|im_end|>\n<|im_start|>assistant\nOne, ");
  EXPECT_EQ(prompt.parser->Parse("two", false).content, "two");
}

TEST(ChatTemplateTest, WhichLastWordsAreContinuedCanBeSaid) {
  ChatInput input = UserSays("Count");
  input.messages.push_back({{"role", "assistant"}, {"content", "One, "}});
  for (const Continuation how : {Continuation::kAlways, Continuation::kContent}) {
    input.continuation = how;
    EXPECT_EQ(Apply("", input).text, "<|im_start|>user\nCount<|im_end|>\n<|im_start|>assistant\nOne, ");
  }
  input.messages.push_back({{"role", "user"}, {"content", "and?"}});
  const std::unique_ptr<ChatTemplate> chat = MakeTemplate("");
  EXPECT_EQ(chat->Apply(input).status().field(), "messages[2]") << "nothing to continue";
}

TEST(ChatTemplateTest, TwoMessagesOfTheAssistantAtTheEndAreRefused) {
  const std::unique_ptr<ChatTemplate> chat = MakeTemplate("");
  ChatInput input = UserSays("Count");
  input.messages.push_back({{"role", "assistant"}, {"content", "One, "}});
  EXPECT_TRUE(chat->Apply(input).ok());
  input.messages.push_back({{"role", "assistant"}, {"content", "two"}});
  EXPECT_EQ(chat->Apply(input).status().field(), "messages[2]");
  input.add_generation_prompt = false;
  EXPECT_TRUE(chat->Apply(input).ok()) << "nothing is to be generated";
}

TEST(ChatTemplateTest, SaysWhatTheTemplateCanDo) {
  EXPECT_TRUE(MakeTemplate("")->abilities().contains("supports_tools"));
}

TEST(ChatTemplateTest, EmptyLastWordsAreAnOrdinaryQuestion) {
  ChatInput input = UserSays("hi");
  input.messages.push_back({{"role", "assistant"}, {"content", nullptr}});
  EXPECT_EQ(Apply("", input).text, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, ContinuationIsNotRepeatedByTheParserOfASchema) {
  ChatInput input = UserSays("hi");
  input.json_schema = Schema({{"type", "object"}});
  input.messages.push_back({{"role", "assistant"}, {"content", "{\"x\":"}});
  const ChatPrompt prompt = Apply("", input);
  EXPECT_FALSE(prompt.parser->plain());
  EXPECT_EQ(prompt.grammar_prefill, "<|im_start|>assistant\n{\"x\":");
  EXPECT_EQ(prompt.parser->Parse(" 1}", false).content, " 1}");
}

TEST(ChatTemplateTest, ThinkingGoesToReasoning) {
  const ChatPrompt prompt = Apply(kThinkingTemplate, UserSays("hi"));
  EXPECT_FALSE(prompt.parser->plain());
  const ChatMessage message = prompt.parser->Parse("<think>\nhmm\n</think>\n\nHello", false);
  EXPECT_EQ(message.content, "Hello");
  EXPECT_NE(message.reasoning.find("hmm"), std::string::npos);
  EXPECT_EQ(message.reasoning.find("think"), std::string::npos);
}

TEST(ChatTemplateTest, SchemaBecomesAGrammar) {
  ChatInput input = UserSays("hi");
  input.json_schema =
      Schema(Json::parse(R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})"));
  const ChatPrompt prompt = Apply(kSmolTemplate, input);
  EXPECT_NE(prompt.grammar.find("root ::="), std::string::npos);
  EXPECT_FALSE(prompt.grammar_lazy);
  EXPECT_EQ(prompt.parser->Parse("{\"a\": 5}", false).content, "{\"a\": 5}");
}

TEST(ChatTemplateTest, OwnGrammarIsPassedOn) {
  ChatInput input = UserSays("hi");
  input.grammar = "root ::= \"yes\" | \"no\"";
  const ChatPrompt prompt = Apply(kSmolTemplate, input);
  EXPECT_EQ(prompt.grammar, input.grammar);
  EXPECT_EQ(prompt.grammar_prefill, "");
}

TEST(ChatTemplateTest, ArgumentsReachTheTemplate) {
  ChatInput input = UserSays("hi");
  input.template_arguments = {{"mood", "calm"}};
  EXPECT_EQ(Apply("{{ mood }}: {{ messages[0].content }}", input).text, "calm: hi");
}

TEST(ChatTemplateTest, TemplateErrorsAreBadRequests) {
  const auto chat = MakeTemplate("{{ raise_exception('roles must alternate') }}{{ messages[0].content }}");
  const Result<ChatPrompt> prompt = chat->Apply(UserSays("hi"));
  ASSERT_FALSE(prompt.ok());
  EXPECT_EQ(prompt.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(prompt.status().field(), "messages");
  EXPECT_NE(prompt.status().message().find("roles must alternate"), std::string::npos);
}

TEST(ChatTemplateTest, BrokenTemplatesAreRefused) {
  const auto chat = ChatTemplate::Create("{% for x in %}", "", "");
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.status().code(), StatusCode::kInvalidArgument);
}

// The same conversation with a template that knows tools and one that does not.
class ToolTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Templates, ToolTest, testing::Values(kToolTemplate, kSmolTemplate));

constexpr const char* kCallText =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";

TEST_P(ToolTest, ModelMayCall) {
  ChatInput input = UserSays("Weather in Rome?");
  input.tools = {WeatherTool()};
  const ChatPrompt prompt = Apply(GetParam(), input);
  EXPECT_NE(prompt.text.find("The weather in a city"), std::string::npos);
  EXPECT_TRUE(prompt.grammar_lazy);
  ASSERT_FALSE(prompt.triggers.empty());
  EXPECT_NE(prompt.triggers[0].value.find("<tool_call>"), std::string::npos);
  EXPECT_FALSE(prompt.parser->plain());

  const ChatMessage message = prompt.parser->Parse(std::string("Let me see.") + kCallText, false);
  EXPECT_EQ(message.content, "Let me see.");
  ASSERT_EQ(message.tool_calls.size(), 1u);
  EXPECT_EQ(message.tool_calls[0].name, "get_weather");
  EXPECT_EQ(Json::parse(message.tool_calls[0].arguments), Json({{"city", "Rome"}}));
  EXPECT_EQ(prompt.parser->Parse("No need.", false), (ChatMessage{"No need.", "", {}}));
}

TEST_P(ToolTest, ModelMustCall) {
  ChatInput input = UserSays("Weather in Rome?");
  input.tools = {WeatherTool()};
  input.tool_choice = ToolChoice::kRequired;
  input.json_schema = Schema({{"type", "object"}});
  const ChatPrompt prompt = Apply(GetParam(), input);
  EXPECT_FALSE(prompt.grammar_lazy);
  EXPECT_NE(prompt.grammar.find("get_weather"), std::string::npos);
  EXPECT_EQ(prompt.parser->Parse(kCallText, false).tool_calls.size(), 1u);
}

TEST_P(ToolTest, ToolsMayBeForbidden) {
  ChatInput input = UserSays("hi");
  input.tools = {WeatherTool()};
  input.tool_choice = ToolChoice::kNone;
  const ChatPrompt prompt = Apply(GetParam(), input);
  EXPECT_EQ(prompt.grammar, "");
  EXPECT_TRUE(prompt.parser->Parse(kCallText, false).tool_calls.empty());
}

TEST_P(ToolTest, HistoryOfCallsIsShown) {
  ChatInput input = UserSays("Weather in Rome?");
  input.tools = {WeatherTool()};
  input.messages.push_back(
      Json::parse(R"({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
    "function": {"name": "get_weather", "arguments": "{\"city\": \"Rome\"}"}}]})"));
  input.messages.push_back({{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "31 degrees"}});
  const ChatPrompt prompt = Apply(GetParam(), input);
  EXPECT_NE(prompt.text.find("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}"),
            std::string::npos)
      << prompt.text;
  EXPECT_NE(prompt.text.find("31 degrees"), std::string::npos);
}

TEST_P(ToolTest, DeepAnswersAreNotParsed) {
  ChatInput input = UserSays("hi");
  input.tools = {Tool({{"name", "get_weather"}, {"parameters", Json::object()}})};
  const ChatPrompt prompt = Apply(GetParam(), input);
  const std::string begin = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"a\": ";
  // The second hides a closing bracket in each level.
  for (const std::string level : {"[", "[\"]\", ", "{\"\\\"}\": "}) {
    std::string deep = begin, shallow = begin;
    for (int i = 0; i < 20000; ++i) deep += level;
    for (int i = 0; i < 50; ++i) shallow += level;
    EXPECT_EQ(prompt.parser->Parse(deep, true), (ChatMessage{deep, "", {}}));
    EXPECT_EQ(prompt.parser->Parse(shallow, true).tool_calls.size(), 1u) << level;
  }
  std::string wide = begin + "[";
  for (int i = 0; i < 1000; ++i) wide += "{\"it's\": [\"]\"]}, ";
  EXPECT_EQ(prompt.parser->Parse(wide, true).tool_calls.size(), 1u);
}

TEST_P(ToolTest, WhatDoesNotParseIsContent) {
  ChatInput input = UserSays("hi");
  input.tools = {WeatherTool()};
  const ChatPrompt prompt = Apply(GetParam(), input);
  const std::string broken = "<tool_call>\n[]</tool_call>";
  EXPECT_EQ(prompt.parser->Parse(broken, false), (ChatMessage{broken, "", {}}));
}

TEST(ToolFallbackTest, SystemMessageIsKeptAndResultsAreOneTurn) {
  const Json messages = Json::parse(R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "q"},
    {"role": "assistant", "content": "ok", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
    {"role": "tool", "content": "r1"}, {"role": "tool", "content": "r2"}])");
  const Json written = WriteToolsAsText(messages, {WeatherTool()});
  ASSERT_EQ(written.size(), 4u);
  EXPECT_EQ(written[0]["role"], "system");
  EXPECT_TRUE(written[0]["content"].get<std::string>().starts_with("Be kind.\n"));
  EXPECT_NE(written[0]["content"].get<std::string>().find("get_weather"), std::string::npos);
  EXPECT_EQ(written[2]["content"], "ok\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call>");
  EXPECT_FALSE(written[2].contains("tool_calls"));
  EXPECT_EQ(written[3]["role"], "user");
  EXPECT_EQ(written[3]["content"], "<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response>");
  EXPECT_EQ(WriteToolsAsText(Json::parse(R"([{"role": "user", "content": "q"}])"), {}).size(), 1u);
}

TEST(ToolFallbackTest, GrammarHasOneCallUnlessParallel) {
  const std::vector<ChatTool> tools = {WeatherTool(), Tool({{"name", "now"}})};
  const std::string one = ToolCallGrammar(tools, /*parallel=*/false);
  EXPECT_NE(one.find("root ::= call\n"), std::string::npos) << one;
  EXPECT_NE(one.find("call ::= call-get-weather | call-now\n"), std::string::npos) << one;
  EXPECT_NE(ToolCallGrammar(tools, /*parallel=*/true).find("root ::= call (\"\\n\" call)*\n"), std::string::npos);
}

}  // namespace
}  // namespace outrider
