#include "bench/prompt_set.h"

#include <gtest/gtest.h>

#include <map>

namespace outrider {
namespace {

TEST(PromptSetTest, ReadsLinesAndSaysWhichOneIsWrong) {
  const auto prompts = ParsePrompts("{\"category\":\"code\",\"turns\":[\"a\",\"b\"]}\n\n{\"turns\":[\"c\"]}");
  ASSERT_TRUE(prompts.ok());
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[0].category, "code");
  EXPECT_EQ((*prompts)[0].turns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*prompts)[1].category, "other");
  for (const char* bad : {"{\"turns\":[\"c\"]}\nnonsense", "\n{\"turns\":[]}", "{\"turns\":[\"c\"]}\n{\"turns\":[1]}",
                          "\n{\"turns\":[\"\"]}", "\n[]", "\n{\"turns\":[\"c\"],\"category\":1}",
                          "\n{\"turns\":[\"c\"],\"category\":\"all\"}"}) {
    const auto refused = ParsePrompts(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.status().message().find("line 2: "), std::string::npos) << refused.status().message();
  }
  EXPECT_FALSE(ParsePrompts("").ok());
  EXPECT_FALSE(ParsePrompts("\n \n").ok());
}

TEST(PromptSetTest, BringsPromptsOfEveryKind) {
  const auto prompts = ParsePrompts(DefaultPrompts());
  ASSERT_TRUE(prompts.ok()) << prompts.status().message();
  EXPECT_GE(prompts->size(), 48u);
  std::map<std::string, int> categories;
  for (const BenchPrompt& prompt : *prompts) ++categories[prompt.category];
  for (const char* category : {"chat", "code", "edit", "summarise", "translate", "reasoning", "json", "long"}) {
    EXPECT_GE(categories[category], 4) << category;
  }
}

TEST(PromptSetTest, AChoiceIsSpreadOverTheCategories) {
  const std::vector<BenchPrompt> prompts = {{"a", {"a1"}}, {"a", {"a2"}}, {"a", {"a3"}},
                                            {"b", {"b1"}}, {"c", {"c1"}}, {"c", {"c2"}}};
  const auto firsts = [&](int count) {
    std::string all;
    for (const BenchPrompt& prompt : SpreadOverCategories(prompts, count)) all += prompt.turns[0] + " ";
    return all;
  };
  EXPECT_EQ(firsts(2), "a1 b1 ");
  EXPECT_EQ(firsts(5), "a1 b1 c1 a2 c2 ");
  for (const int all : {0, 6, 7}) EXPECT_EQ(firsts(all), "a1 a2 a3 b1 c1 c2 ") << all;
}

TEST(PromptSetTest, ProseIsRealTextOfAboutThatLength) {
  EXPECT_EQ(Prose(0), "");
  EXPECT_NEAR(static_cast<double>(Prose(2000).size()), 8400, 200);
  EXPECT_GT(Prose(8000).size(), 30000u);
  EXPECT_TRUE(Prose(8000).starts_with(Prose(100)));
  EXPECT_GE(MaxProseTokens(), 8192);
}

}  // namespace
}  // namespace outrider
