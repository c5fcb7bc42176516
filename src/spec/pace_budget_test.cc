#include "spec/pace_budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

// Whoever spends all that is affordable in every step, in vain, still keeps the promised pace.
TEST(PaceBudgetTest, LosesNoMoreThanTheAllowance) {
  const PaceTuning tuning;
  for (const int generating : {1, 4}) {
    PaceBudget budget(4, 0.9, tuning);
    budget.Begin(2);
    double plain_steps = 0;
    for (int token = 1; token <= 500; ++token) {
      const double spent = 1 + budget.Affordable(2, generating);
      budget.Observe(2, generating, 1, spent);
      plain_steps += spent;
      if (token < tuning.judged_tokens) continue;
      EXPECT_GE(token / plain_steps, generating == 1 ? 0.97 : 0.88) << token;
    }
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
  EXPECT_FALSE(std::isinf(budget.Affordable(0, 1)));
}

TEST(PaceBudgetTest, ExpectationsAreTrustedAsFarAsTheyCameTrue) {
  PaceBudget good(1, 0.9), bad(1, 0.9);
  const double first = good.Trust();
  for (int i = 0; i < 50; ++i) {
    good.ObserveDrafts(2, 2);
    bad.ObserveDrafts(2, 0);
  }
  EXPECT_GT(good.Trust(), 0.9);
  EXPECT_LE(good.Trust(), PaceTuning().max_trust);
  EXPECT_LT(bad.Trust(), first / 4);
}

}  // namespace
}  // namespace outrider
