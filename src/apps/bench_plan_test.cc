#include "apps/bench_plan.h"

#include <gtest/gtest.h>

#include <set>

#include "base/file.h"

namespace outrider {
namespace {

TEST(BenchPlanTest, ContextsAreNumbersOfTokens) {
  EXPECT_EQ(*ParseContextTokens("0"), 0);
  EXPECT_EQ(*ParseContextTokens("300"), 300);
  EXPECT_EQ(*ParseContextTokens("2k"), 2048);
  EXPECT_EQ(*ParseContextTokens("2K"), 2048);
  for (const char* bad : {"", "k", "2q", "2kk", "-1", "1.5k", " 2", "2 k", "99999999999999999999"}) {
    const auto refused = ParseContextTokens(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.status().message().find("not '" + std::string(bad) + "'"), std::string::npos);
  }
  const auto too_long = ParseContextTokens("1000k");
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.status().message().find(std::to_string(MaxProseTokens())), std::string::npos);
}

TEST(BenchPlanTest, TakesTheOptions) {
  BenchOptions options;
  options.count = 8;
  options.runs = 2;
  options.tokens = 64;
  options.temperatures = {0, 0.8};
  options.concurrency = {1, 4};
  options.contexts = {"0", "1k"};
  const auto plan = MakeBenchPlan(options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->prompts.size(), 8u);
  std::set<std::string> categories;
  for (const BenchPrompt& prompt : plan->prompts) categories.insert(prompt.category);
  EXPECT_EQ(categories.size(), 8u) << "one of each";
  EXPECT_EQ(plan->runs, 2);
  EXPECT_EQ(plan->max_tokens, 64);
  EXPECT_EQ(plan->temperatures, (std::vector<double>{0, 0.8}));
  EXPECT_EQ(plan->concurrencies, (std::vector<int>{1, 4}));
  EXPECT_EQ(plan->contexts, (std::vector<int>{0, 1024}));
}

TEST(BenchPlanTest, SaysWhichOptionIsWrong) {
  const std::string path = testing::TempDir() + "/bench_plan_prompts.jsonl";
  ASSERT_TRUE(KeepFile(path, "{\"turns\":[\"a\"]}\n{\"turns\":[\"b\"]}\n").ok());
  BenchOptions options;
  options.prompts = path;
  options.concurrency = {1, 3};
  EXPECT_EQ(MakeBenchPlan(options).status().message(), "--concurrency 3: there are only 2 prompts to ask at a time");
  options.concurrency = {2};
  EXPECT_TRUE(MakeBenchPlan(options).ok());
  options.contexts = {"0", "x"};
  EXPECT_NE(MakeBenchPlan(options).status().message().find("--context"), std::string::npos);
  options.contexts = {"0"};
  ASSERT_TRUE(KeepFile(path, "{}\n").ok());
  EXPECT_TRUE(MakeBenchPlan(options).status().message().starts_with(path + ", line 1: "));
  options.prompts = path + ".none";
  EXPECT_EQ(MakeBenchPlan(options).status().message(), "cannot read the prompts in " + path + ".none");
}

}  // namespace
}  // namespace outrider
