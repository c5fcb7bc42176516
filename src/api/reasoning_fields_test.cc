#include "api/reasoning_fields.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"

namespace outrider {
namespace {

ChatInput Read(const Json& body, const ApiContext& context, ChatInput input = {}) {
  EXPECT_TRUE(ReadReasoningFields(body, context, &input).ok()) << body;
  return input;
}

TEST(ReasoningFieldsTest, TheRequestSaysWhereReasoningGoes) {
  TestContext context;
  EXPECT_TRUE(Read(Json::object(), context.api).extract_reasoning);
  EXPECT_FALSE(Read({{"reasoning_format", "none"}}, context.api).extract_reasoning);
  EXPECT_TRUE(Read({{"reasoning_format", "deepseek"}, {"stream", true}}, context.api).extract_reasoning);
  EXPECT_TRUE(Read({{"reasoning_format", "deepseek-legacy"}}, context.api).extract_reasoning);
  EXPECT_FALSE(Read({{"reasoning_format", "deepseek-legacy"}, {"stream", true}}, context.api).extract_reasoning);
  context.api.reasoning.format = "none";
  EXPECT_FALSE(Read(Json::object(), context.api).extract_reasoning);
  EXPECT_TRUE(Read({{"reasoning_format", "auto"}}, context.api).extract_reasoning);
}

TEST(ReasoningFieldsTest, TheRequestSaysHowLongTheModelMayThink) {
  TestContext context;
  EXPECT_EQ(Read(Json::object(), context.api).reasoning_budget, -1);
  context.api.reasoning = {.format = "auto", .budget = 50, .budget_message = "Enough."};
  EXPECT_EQ(Read(Json::object(), context.api).reasoning_budget, 50);
  EXPECT_EQ(Read(Json::object(), context.api).reasoning_budget_message, "Enough.");
  EXPECT_EQ(Read({{"thinking_budget_tokens", 7}}, context.api).reasoning_budget, 7);
  const Json both = {{"thinking_budget_tokens", 7}, {"reasoning_budget_tokens", 0}, {"reasoning_budget_message", ""}};
  EXPECT_EQ(Read(both, context.api).reasoning_budget, 0);
  EXPECT_EQ(Read(both, context.api).reasoning_budget_message, "");
  ChatInput said;
  said.reasoning_budget = 9;
  EXPECT_EQ(Read(Json::object(), context.api, said).reasoning_budget, 9);
}

TEST(ReasoningFieldsTest, MistakesAreNamed) {
  const TestContext context;
  for (const auto& [field, value] : {std::pair<const char*, Json>{"reasoning_format", "some"},
                                     {"reasoning_format", 1},
                                     {"reasoning_budget_tokens", -2},
                                     {"thinking_budget_tokens", "many"},
                                     {"reasoning_budget_message", 5}}) {
    ChatInput input;
    EXPECT_EQ(ReadReasoningFields({{field, value}}, context.api, &input).field(), field);
  }
}

// The tags reach the sampler as tokens, with the message in front of the end.
TEST(ReasoningFieldsTest, ABudgetReachesTheSampler) {
  const TestContext context(kThinkingTemplate);
  const Json body = {{"messages", {{{"role", "user"}, {"content", "hi"}}}},
                     {"reasoning_budget_tokens", 5},
                     {"reasoning_budget_message", "Enough."}};
  const Result<ParsedRequest> request = ParseChatCompletion(body, "", context.api);
  ASSERT_TRUE(request.ok()) << request.status().message();
  const ReasoningOptions& reasoning = request->generation.sampling.reasoning;
  const auto text_of = [&](const std::vector<Token>& tokens) {
    std::string text;
    for (const Token token : tokens) text += context.tokenizer.Piece(token, true);
    return text;
  };
  EXPECT_EQ(reasoning.budget, 5);
  EXPECT_EQ(text_of(reasoning.start).substr(0, 7), "<think>");
  EXPECT_FALSE(reasoning.begun);
  ASSERT_FALSE(reasoning.ends.empty());
  EXPECT_NE(text_of(reasoning.ends[0]).find("</think>"), std::string::npos);
  EXPECT_EQ(text_of(reasoning.closing), "Enough." + text_of(reasoning.ends[0]));
}

TEST(ReasoningFieldsTest, WithoutAFormatReasoningIsContent) {
  const TestContext context(kThinkingTemplate);
  const std::string said = "<think>\nhm\n</think>\n\nYes.";
  Json body = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  Result<ParsedRequest> request = ParseChatCompletion(body, "", context.api);
  EXPECT_EQ(Whole(&*request, {MakeLastChunk(said)})["choices"][0]["message"]["reasoning_content"], "hm\n");
  body["reasoning_format"] = "none";
  request = ParseChatCompletion(body, "", context.api);
  EXPECT_EQ(Whole(&*request, {MakeLastChunk(said)})["choices"][0]["message"],
            Json({{"role", "assistant"}, {"content", said}}));
}

}  // namespace
}  // namespace outrider
