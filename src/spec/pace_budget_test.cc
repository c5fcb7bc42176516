#include "spec/pace_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Whoever spends all that is affordable in every step, in vain, loses so much and no more. (Relying on draft tokens
// comes on top: Policy.)
TEST(PaceBudgetTest, LosesNoMoreThanTheAllowance) {
  const PaceTuning tuning;
  constexpr double kMinPaceBesideOthers = 0.9;
  for (const int generating : {1, 4}) {
    PaceBudget budget(4, kMinPaceBesideOthers, tuning);
    budget.Begin(2);
    double lost = 0;
    for (int token = 1; token <= 500; ++token) {
      const double more = budget.Affordable(2, generating);
      budget.Observe(2, generating, 1, 1 + more);
      lost += more;
      const double beyond = std::max(0.0, token - tuning.long_answer);
      const double beside_others = generating > 1 ? 1 / kMinPaceBesideOthers - 1 : 0;
      EXPECT_LE(lost, tuning.first_savings + tuning.long_share * beyond + beside_others * token + 1e-9) << token;
      if (token == 64 && generating == 1) {
        EXPECT_LT(lost, 0.02 * 64);
      }
    }
    EXPECT_GT(lost, tuning.long_share * 350) << "and it may lose nearly all of that";
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

TEST(PaceBudgetTest, LossesAreNotForgiven) {
  PaceBudget budget(1, 0.9);
  budget.Begin(0);
  for (int i = 0; i < 20; ++i) budget.Observe(0, 1, 1, 2);
  EXPECT_DOUBLE_EQ(budget.Savings(0, 1), PaceTuning().first_savings - 20);
  EXPECT_EQ(budget.Affordable(0, 1), 0);
}

TEST(PaceBudgetTest, LongAnswersMayInvest) {
  const PaceTuning tuning;
  PaceBudget budget(1, 0.9);
  budget.Begin(0);
  while (budget.Patience(0) == 1) budget.Observe(0, 1, 1, 1);
  EXPECT_NEAR(budget.Savings(0, 1), tuning.first_savings, 2 * tuning.long_share) << "an answer as most are";
  for (int i = 0; i < 2 * tuning.long_answer; ++i) budget.Observe(0, 1, 1, 1);
  EXPECT_NEAR(budget.Savings(0, 1), tuning.first_savings + 2 * tuning.long_answer * tuning.long_share, 0.1);
  EXPECT_NEAR(budget.Patience(0), 3, 0.1);
}

TEST(PaceBudgetTest, WithoutAPaceToKeepOthersMayBeSlowedDownAtWill) {
  PaceBudget budget(2, 0);
  budget.Begin(0);
  EXPECT_TRUE(std::isinf(budget.Affordable(0, 2)));
  EXPECT_TRUE(std::isinf(budget.Savings(0, 2)));
  EXPECT_FALSE(std::isinf(budget.Affordable(0, 1)));
}

}  // namespace
}  // namespace outrider
