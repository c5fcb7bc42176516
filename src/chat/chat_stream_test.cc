#include "chat/chat_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "chat/chat_test_util.h"
#include "chat/tool_fallback.h"

namespace outrider {
namespace {

// Says what it is told to, text by text.
class ScriptedParser : public ChatParser {
 public:
  explicit ScriptedParser(std::vector<std::pair<std::string, ChatMessage>> script) : script_(std::move(script)) {}
  ChatMessage Parse(const std::string& text, bool) const override {
    for (const auto& [said, message] : script_) {
      if (said == text) return message;
    }
    return {};
  }
  bool plain() const override { return false; }

 private:
  std::vector<std::pair<std::string, ChatMessage>> script_;
};

// Counts the bytes that another parser is given.
class CountingParser : public ChatParser {
 public:
  explicit CountingParser(std::shared_ptr<const ChatParser> parser) : parser_(std::move(parser)) {}
  ChatMessage Parse(const std::string& text, bool partial) const override {
    bytes += text.size();
    return parser_->Parse(text, partial);
  }
  bool plain() const override { return parser_->plain(); }
  std::optional<std::vector<std::string>> markers() const override { return parser_->markers(); }

  mutable size_t bytes = 0;

 private:
  std::shared_ptr<const ChatParser> parser_;
};

void Add(const std::vector<ChatDelta>& deltas, ChatMessage* sum) {
  for (const ChatDelta& delta : deltas) {
    switch (delta.kind) {
      case ChatDelta::Kind::kReasoning:
        sum->reasoning += delta.text;
        break;
      case ChatDelta::Kind::kContent:
        sum->content += delta.text;
        break;
      case ChatDelta::Kind::kToolCall:
        ASSERT_EQ(delta.tool_index, static_cast<int>(sum->tool_calls.size()));
        sum->tool_calls.push_back(delta.call);
        break;
      case ChatDelta::Kind::kToolArguments:
        sum->tool_calls.at(delta.tool_index).arguments += delta.text;
        break;
    }
  }
}

std::shared_ptr<const ChatParser> ToolParser() {
  ChatInput input = UserSays("hi");
  input.tools = {WeatherTool()};
  input.parallel_tool_calls = true;
  return MakeTemplate(kToolTemplate)->Apply(input)->parser;
}

std::shared_ptr<const ChatParser> SchemaParser() {
  ChatInput input = UserSays("hi");
  input.json_schema = Schema({{"type", "object"}});
  return MakeTemplate(kToolTemplate)->Apply(input)->parser;
}

std::string CallText(const std::string& city) {
  return "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"" + city + "\"}}\n</tool_call>";
}

TEST(ChatStreamTest, PlainTextIsNotParsed) {
  ChatStream stream(MakeTemplate("")->Apply(UserSays("hi"))->parser);
  EXPECT_EQ(stream.Feed("a", false).at(0).text, "a");
  EXPECT_TRUE(stream.Feed("", false).empty());
  EXPECT_EQ(stream.Feed("<tool_call>", true).at(0).text, "<tool_call>");
  EXPECT_EQ(stream.message().content, "a<tool_call>");
  EXPECT_EQ(stream.text(), "a<tool_call>");
}

TEST(ChatStreamTest, DeltasAddUpToTheMessageHoweverTheTextIsCut) {
  const auto parser = ToolParser();
  const std::vector<std::string> texts = {"",
                                          "Hello <there>",
                                          "I look. " + CallText("Rome"),
                                          CallText("Rome") + "\n" + CallText("Paris"),
                                          CallText("a \\\"b\\\" \\u00e9 {}"),
                                          "I look. <tool_call>\n{\"name\": \"get_wea",
                                          "a < b, <tool> and <tool_cal" + std::string(300, 'l') + " <tool_call",
                                          "x<tool_call>\n{\"name\": \"x",
                                          "One <tool_call>two</tool_call> three",
                                          " \n leading and trailing \n "};
  EXPECT_TRUE(rc::check([&] {
    const std::string text = *rc::gen::elementOf(texts);
    ChatStream stream(parser);
    ChatMessage sum;
    size_t at = 0;
    while (at < text.size()) {
      const size_t n = *rc::gen::inRange<size_t>(1, 9);
      Add(stream.Feed(std::string_view(text).substr(at, n), false), &sum);
      at += n;
    }
    Add(stream.Feed("", true), &sum);
    RC_ASSERT(sum == stream.message());
    ChatMessage whole = parser->Parse(text, false);
    RC_ASSERT(sum.content == whole.content);
    std::erase_if(whole.tool_calls, [](const ToolCall& call) { return call.name.empty(); });
    RC_ASSERT(sum.tool_calls.size() == whole.tool_calls.size());
    for (size_t i = 0; i < whole.tool_calls.size(); ++i) {
      RC_ASSERT(sum.tool_calls[i].name == whole.tool_calls[i].name);
      RC_ASSERT(sum.tool_calls[i].arguments == whole.tool_calls[i].arguments);
      RC_ASSERT(sum.tool_calls[i].id.starts_with("call_"));
    }
  }));
}

struct Followed {
  ChatMessage message;
  size_t parsed_bytes = 0;
  size_t max_delay = 0;  // the most bytes of the text that were not in the message after a piece
};

// Feeds the text in pieces as long as tokens.
Followed Follow(const std::shared_ptr<const ChatParser>& parser, const std::string& text) {
  constexpr size_t kPiece = 4;
  const auto counting = std::make_shared<CountingParser>(parser);
  ChatStream stream(counting);
  Followed followed;
  for (size_t at = 0; at < text.size(); at += kPiece) {
    Add(stream.Feed(std::string_view(text).substr(at, kPiece), false), &followed.message);
    const size_t shown = followed.message.content.size() + followed.message.reasoning.size();
    followed.max_delay = std::max(followed.max_delay, std::min(at + kPiece, text.size()) - shown);
  }
  Add(stream.Feed("", true), &followed.message);
  EXPECT_EQ(followed.message, stream.message());
  followed.parsed_bytes = counting->bytes;
  return followed;
}

constexpr size_t MaxParsedBytes(size_t text_bytes) {
  return (ChatStream::kMaxParsedShare + 2) * text_bytes + ChatStream::kFreeBytes;
}

TEST(ChatStreamTest, RunningTextIsHardlyParsedAndNotDelayed) {
  std::string text;
  while (text.size() < 32000) text += "The quick (brown) fox <b>jumps</b> over {\"the\": [1, 2]} lazy \"dog\". ";
  const Followed followed = Follow(ToolParser(), text);
  EXPECT_EQ(followed.message.content, text);
  EXPECT_LT(followed.parsed_bytes, 2 * text.size());
  EXPECT_LT(followed.max_delay, std::string("<tool_call>").size());
}

TEST(ChatStreamTest, ReasoningIsRunningTextToo) {
  const auto parser = MakeTemplate(kThinkingTemplate)->Apply(UserSays("hi"))->parser;
  std::string thoughts;
  while (thoughts.size() < 32000) thoughts += "Let me think about that < this. ";
  const Followed followed = Follow(parser, "<think>\n" + thoughts + "\n</think>\n\n" + thoughts);
  EXPECT_EQ(followed.message.content, thoughts);
  EXPECT_EQ(followed.message.reasoning, parser->Parse("<think>\n" + thoughts + "\n</think>\n\n", false).reasoning);
  EXPECT_LT(followed.parsed_bytes, 6 * thoughts.size());
  EXPECT_LT(followed.max_delay, std::string("<think>\n\n</think>\n\n").size() + 8);
}

TEST(ChatStreamTest, LongArgumentsAreParsedAFewTimesPerByte) {
  std::string city;
  while (city.size() < 32000) city += "Rome, ";
  const std::string text = "I look. " + CallText(city);
  const Followed followed = Follow(ToolParser(), text);
  EXPECT_EQ(followed.message.content, "I look. ");
  ASSERT_EQ(followed.message.tool_calls.size(), 1u);
  EXPECT_EQ(Json::parse(followed.message.tool_calls[0].arguments), Json({{"city", city}}));
  EXPECT_LT(followed.parsed_bytes, MaxParsedBytes(text.size()));
}

TEST(ChatStreamTest, AnswersBoundToASchemaAreParsedAFewTimesPerByte) {
  Json answer = Json::object();
  for (int i = 0; i < 1500; ++i) answer["key " + std::to_string(i)] = {i, "value"};
  const std::string text = DumpJson(answer);
  const Followed followed = Follow(SchemaParser(), text);
  EXPECT_EQ(followed.message.content, text);
  EXPECT_LT(followed.parsed_bytes, MaxParsedBytes(text.size()));
  EXPECT_LT(followed.max_delay, text.size() / 16);
}

TEST(ChatStreamTest, ManyMarkersAreNoWayAroundTheBound) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "text <tool_call> ";
  const auto parser = ToolParser();
  const Followed followed = Follow(parser, text);
  EXPECT_EQ(followed.message.content, parser->Parse(text, false).content);
  EXPECT_LT(followed.parsed_bytes, MaxParsedBytes(text.size()));
}

TEST(ChatStreamTest, ArgumentsStreamBeforeTheCallIsComplete) {
  ChatStream stream(ToolParser());
  const auto deltas = stream.Feed("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ro", false);
  ASSERT_GE(deltas.size(), 2u);
  EXPECT_EQ(deltas[0].kind, ChatDelta::Kind::kToolCall);
  EXPECT_EQ(deltas[0].call.name, "get_weather");
  EXPECT_EQ(deltas[1].kind, ChatDelta::Kind::kToolArguments);
}

TEST(ChatStreamTest, WhatWasSentIsNeverTakenBackNorSentTwice) {
  ChatStream stream(std::make_shared<ScriptedParser>(std::vector<std::pair<std::string, ChatMessage>>{
      {"a", {"Hello <", "", {}}}, {"ab", {"Hello ", "", {}}}, {"abc", {"Hello <x>", "", {}}}}));
  EXPECT_EQ(stream.Feed("a", false).at(0).text, "Hello <");
  EXPECT_TRUE(stream.Feed("b", false).empty());
  EXPECT_EQ(stream.Feed("c", true).at(0).text, "x>");
  EXPECT_EQ(stream.message().content, "Hello <x>");
}

TEST(ChatStreamTest, NamesWaitUntilTheyAreWholeAndIdsStay) {
  const std::string arguments = "{}";
  ChatStream stream(std::make_shared<ScriptedParser>(std::vector<std::pair<std::string, ChatMessage>>{
      {"1", {"", "", {{"", "get", ""}}}},
      {"12", {"", "", {{"", "get_weather", "{"}}}},
      {"123", {"", "", {{"", "get_weather", "{}"}, {"own", "now", ""}}}}}));
  EXPECT_TRUE(stream.Feed("1", false).empty());
  const auto second = stream.Feed("2", false);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0].call.name, "get_weather");
  const std::string id = second[0].call.id;
  EXPECT_EQ(id.size(), std::string("call_").size() + 24);
  stream.Feed("3", true);
  ASSERT_EQ(stream.message().tool_calls.size(), 2u);
  EXPECT_EQ(stream.message().tool_calls[0], (ToolCall{id, "get_weather", "{}"}));
  EXPECT_EQ(stream.message().tool_calls[1], (ToolCall{"own", "now", ""}));
}

}  // namespace
}  // namespace outrider
