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

TEST(PromptSetTest, DepthIsRealTextOfAboutThatLength) {
  EXPECT_EQ(Depth(0), "");
  EXPECT_NEAR(static_cast<double>(Depth(2000).size()), 8400, 200);
  EXPECT_GT(Depth(8000).size(), 30000u);
  EXPECT_TRUE(Depth(8000).starts_with(Depth(100)));
  EXPECT_GE(MostDepth(), 8192);
}

}  // namespace
}  // namespace outrider
