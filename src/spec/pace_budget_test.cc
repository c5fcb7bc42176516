#include "spec/pace_budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

// The promise of pace_budget.h: whoever spends all that is affordable in every step, in vain, loses so much and no
// more.
TEST(PaceBudgetTest, LosesNoMoreThanTheAllowance) {
  const PaceTuning tuning;
  constexpr double kMinPaceBesideOthers = 0.9;
  const double at_the_start = tuning.judged_tokens * (1 / tuning.min_pace_alone - 1);
  for (const int generating : {1, 4}) {
    const double min_pace = generating == 1 ? tuning.min_pace_alone : kMinPaceBesideOthers;
    PaceBudget budget(4, kMinPaceBesideOthers, tuning);
    budget.Begin(2);
    double plain_steps = 0;
    for (int token = 1; token <= 500; ++token) {
      const double spent = 1 + budget.Affordable(2, generating);
      budget.Observe(2, generating, 1, spent);
      plain_steps += spent;
      EXPECT_LE(plain_steps, token / min_pace + at_the_start + 1e-9) << token;
      if (token != 64) continue;
      EXPECT_NEAR(plain_steps / token - 1, generating == 1 ? 0.020 : 0.121, 0.001) << "as the header says";
    }
    EXPECT_GT(plain_steps, 500 / min_pace) << "and it may lose all of that";
  }
}

TEST(PaceBudgetTest, GainsMayBeRiskedAgainUpToALimit) {
  PaceBudget budget(1, 0.9);
  budget.Begin(0);
  const double first = budget.Affordable(0, 1);
  budget.Observe(0, 1, 5, 1.5);
  EXPECT_GT(budget.Affordable(0, 1), first + 1);
  for (int i = 0; i < 100; ++i) budget.Observe(0, 1, 5, 1.5);
  EXPECT_LE(budget.Affordable(0, 1), PaceTuning().max_savings);
  budget.Begin(0);
  EXPECT_DOUBLE_EQ(budget.Affordable(0, 1), first);
}

TEST(PaceBudgetTest, WithoutAPaceToKeepOthersMayBeSlowedDownAtWill) {
  PaceBudget budget(2, 0);
  budget.Begin(0);
  EXPECT_TRUE(std::isinf(budget.Affordable(0, 2)));
  EXPECT_TRUE(std::isinf(budget.Savings(0, 2)));
  EXPECT_FALSE(std::isinf(budget.Affordable(0, 1)));
}

// What a drafter needs before it can draft at all comes back only later: it may use up the account, but no more.
TEST(PaceBudgetTest, OnlyTheAccountMayBeInvested) {
  PaceBudget budget(1, 0.9);
  budget.Begin(0);
  const double savings = budget.Savings(0, 1);
  EXPECT_GT(savings, 0.5);
  EXPECT_LT(budget.Affordable(0, 1), savings) << "a single step may risk only a part of it";
  budget.Observe(0, 1, 1, 1 + savings + 1);
  EXPECT_EQ(budget.Savings(0, 1), 0);
}

TEST(PaceBudgetTest, LossesAreNotForgiven) {
  PaceBudget budget(1, 0.9);
  budget.Begin(0);
  for (int i = 0; i < 20; ++i) budget.Observe(0, 1, 1, 2);
  const double allowance = 1 / PaceTuning().min_pace_alone - 1;
  budget.Observe(0, 1, 19, 1);
  EXPECT_DOUBLE_EQ(budget.Affordable(0, 1), allowance) << "18 steps of 20 are regained";
  budget.Observe(0, 1, 3, 1);
  EXPECT_GT(budget.Affordable(0, 1), allowance);
}

}  // namespace
}  // namespace outrider
