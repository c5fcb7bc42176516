#include "sampling/reasoning_budget.h"

#include <gtest/gtest.h>

#include "sampling/fake_filters.h"
#include "sampling/sampler.h"

namespace outrider {
namespace {

constexpr Token kStart = 100, kEnd = 101, kOtherEnd = 102, kSorry = 103, kText = 1;

ReasoningOptions Options(int budget) {
  return {.budget = budget, .start = {kStart}, .ends = {{kEnd}, {kOtherEnd, kOtherEnd}}, .closing = {kSorry, kEnd}};
}

std::string PieceOf(Token token) {
  if (token == 200) return "\xE2\x82";  // the first two bytes of €
  return token == 201 ? "\xAC" : "x";
}

// The tokens that may follow, of all that the tests use.
std::vector<Token> Allowed(ReasoningBudget& budget) {
  std::vector<Candidate> storage;
  for (const Token token : {kText, kStart, kEnd, kOtherEnd, kSorry, 200, 201}) storage.push_back({token, 0, 0});
  Candidates candidates{storage.data(), storage.size(), false};
  budget.Apply(candidates);
  std::vector<Token> allowed;
  for (const Candidate& c : candidates) allowed.push_back(c.token);
  return allowed;
}

TEST(ReasoningBudgetTest, TheClosingFollowsWhenTheBudgetIsUsedUp) {
  ReasoningBudget budget(Options(3), PieceOf);
  for (const Token token : {kText, kText, kText, kText, kStart, kText, kText}) {
    EXPECT_EQ(Allowed(budget).size(), 7u);
    budget.Accept(token);
  }
  EXPECT_EQ(Allowed(budget).size(), 7u);
  budget.Accept(kText);
  EXPECT_EQ(Allowed(budget), std::vector<Token>{kSorry});
  EXPECT_EQ(Allowed(budget), std::vector<Token>{kSorry}) << "applying changes nothing";
  budget.Accept(kSorry);
  EXPECT_EQ(Allowed(budget), std::vector<Token>{kEnd});
  budget.Accept(kEnd);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Allowed(budget).size(), 7u);
    budget.Accept(kText);
  }
  budget.Accept(kStart);  // each thinking has a budget of its own
  for (int i = 0; i < 3; ++i) budget.Accept(kText);
  EXPECT_EQ(Allowed(budget), std::vector<Token>{kSorry});
}

TEST(ReasoningBudgetTest, WhoEndsByItselfIsNotClosed) {
  ReasoningBudget budget(Options(3), PieceOf);
  for (const Token token : {kStart, kText, kOtherEnd, kOtherEnd, kText, kText, kText, kText}) budget.Accept(token);
  EXPECT_EQ(Allowed(budget).size(), 7u);
}

TEST(ReasoningBudgetTest, AThinkingThatThePromptBegan) {
  ReasoningOptions options = Options(0);
  options.begun = true;
  ReasoningBudget none(options, PieceOf);
  EXPECT_EQ(Allowed(none), std::vector<Token>{kSorry}) << "no budget: it ends at once";
  options.budget = 1;
  ReasoningBudget one(options, PieceOf);
  EXPECT_EQ(Allowed(one).size(), 7u);
  one.Accept(kText);
  EXPECT_EQ(Allowed(one), std::vector<Token>{kSorry});
}

TEST(ReasoningBudgetTest, ACharacterIsCompletedFirst) {
  ReasoningBudget budget(Options(1), PieceOf);
  budget.Accept(kStart);
  budget.Accept(200);
  EXPECT_EQ(Allowed(budget).size(), 7u);
  budget.Accept(201);
  EXPECT_EQ(Allowed(budget), std::vector<Token>{kSorry});
}

TEST(ReasoningBudgetTest, AGrammarMayForbidTheClosing) {
  ReasoningBudget budget(Options(0), PieceOf);
  budget.Accept(kStart);
  std::vector<Candidate> storage = {{kText, 0, 0}, {kEnd, 0, 0}};
  Candidates candidates{storage.data(), storage.size(), false};
  budget.Apply(candidates);
  EXPECT_EQ(candidates.size, 2u);
  budget.Accept(kEnd);
  EXPECT_EQ(Allowed(budget).size(), 7u) << "it has ended without the message";
}

TEST(ReasoningBudgetTest, TheSamplerLooksAtTheAnswerOnly) {
  FakeFilterFactory factory;
  SamplingOptions options;
  options.temperature = 0;
  options.reasoning = {.budget = 1, .start = {2}, .ends = {{3}}, .closing = {4, 3}};
  auto sampler = Sampler::Create(options, std::vector<Token>{2, 0, 0}, factory);
  ASSERT_TRUE(sampler.ok());
  const std::vector<float> logits = {0, 1, 0, 0, 0};
  EXPECT_EQ((*sampler)->Draw(logits, 0), 1) << "what the prompt has thought is over";
  for (const Token token : {2, 1}) (*sampler)->Accept(token);
  EXPECT_EQ((*sampler)->Draw(logits, 0), 4);
  (*sampler)->Accept(4);
  EXPECT_EQ((*sampler)->Draw(logits, 0), 3);
}

}  // namespace
}  // namespace outrider
