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
      EXPECT_NEAR(plain_steps / token - 1, generating == 1 ? 0.028 : 0.125, 0.001) << "as the header says";
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
