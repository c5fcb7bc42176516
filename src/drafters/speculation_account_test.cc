#include "drafters/speculation_account.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

Draft DraftBy(const std::vector<DrafterId>& sources) {
  Draft draft;
  for (const DrafterId source : sources) draft.tokens.push_back({7, 0.5f, source});
  return draft;
}

TEST(SpeculationAccountTest, EachTokenCountsForWhoDraftedIt) {
  SpeculationAccount account({"one", "two"}, 2);
  account.BeginRequest(0);
  account.AddVerified(0, DraftBy({0, 0, 1}), 2);
  account.AddVerified(0, DraftBy({1}), 1);
  for (const auto& stats : {account.stats(), account.stats(0)}) {
    EXPECT_EQ(stats[0].name, "one");
    EXPECT_EQ(stats[0].verified, 2u);
    EXPECT_EQ(stats[0].accepted, 2u);
    EXPECT_EQ(stats[1].verified, 2u);
    EXPECT_EQ(stats[1].accepted, 1u);
  }
}

TEST(SpeculationAccountTest, ARequestBeginsFromNothingAndTotalsGoOn) {
  SpeculationAccount account({"one"}, 2);
  account.BeginRequest(0);
  account.AddVerified(0, DraftBy({0}), 1);
  account.AddDrafting(0, 0.5);
  account.AddDraftingFor(0, 0, 0.5);
  account.AddStep(0, 4, 2, 1);
  EXPECT_EQ(account.speed_up(0), 2);
  account.BeginRequest(0);
  account.BeginRequest(1);
  EXPECT_EQ(account.stats(0)[0].verified, 0u);
  EXPECT_EQ(account.stats(0)[0].seconds, 0);
  EXPECT_EQ(account.speed_up(0), 1) << "nothing is known";
  EXPECT_EQ(account.stats()[0].verified, 1u);
  EXPECT_EQ(account.stats()[0].seconds, 0.5);
  account.AddStep(1, 1, 2, 1);
  EXPECT_EQ(account.speed_up(1), 0.5);
  EXPECT_EQ(account.speed_up(0), 1) << "sequences are kept apart";
}

}  // namespace
}  // namespace outrider
