#include "apps/plan_candidates.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

std::vector<std::string> Names(const PlanAssumptions& assumptions) {
  std::vector<std::string> names;
  for (const PlanCandidate& candidate : ListCandidates(assumptions)) names.push_back(candidate.name);
  return names;
}

using Strings = std::vector<std::string>;

TEST(PlanCandidatesTest, WithoutKnowledgeSeveralAcceptancesAreShown) {
  PlanAssumptions assumptions;
  EXPECT_EQ(Names(assumptions), Strings(6, "looked up (suffix, n-grams)"));
  assumptions.acceptance = 0.9;
  assumptions.draft_token_seconds = 0.002;
  const auto candidates = ListCandidates(assumptions);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].costs.token_seconds, 0);
  EXPECT_EQ(candidates[0].acceptance, 0.9);
  EXPECT_EQ(candidates[1].name, "draft model");
  EXPECT_EQ(candidates[1].costs.token_seconds, 0.002);
  EXPECT_FALSE(candidates[1].costs.remote);
}

TEST(PlanCandidatesTest, OnlyDraftersThatComputeCanBeElsewhere) {
  PlanAssumptions assumptions;
  assumptions.acceptance = 0.8;
  assumptions.draft_token_seconds = 0.002;
  assumptions.round_trip_seconds = 0.020;
  EXPECT_EQ(Names(assumptions), (Strings{"looked up (suffix, n-grams)", "draft model", "draft model, 20 ms away"}));
  const PlanCandidate there = ListCandidates(assumptions).back();
  EXPECT_TRUE(there.costs.remote);
  EXPECT_EQ(there.costs.round_trip_seconds, 0.020);
  EXPECT_EQ(there.costs.token_seconds, 0.002);
}

TEST(PlanCandidatesTest, RecordedDraftersReplaceAssumptions) {
  PlanAssumptions assumptions;
  assumptions.recorded = {{{"auto", "suffix"}, {{4, 2, 0}, {4, 4, 0}}}, {{"auto", "model"}, {{2, 1, 0}}}};
  EXPECT_EQ(Names(assumptions), Strings{"suffix of 'auto'"}) << "the cost of the model's tokens is not known";
  assumptions.draft_token_seconds = 0.002;
  auto candidates = ListCandidates(assumptions);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].name, "model of 'auto'");
  EXPECT_EQ(candidates[0].acceptance, 0.5);
  EXPECT_EQ(candidates[0].costs.token_seconds, 0.002);
  EXPECT_EQ(candidates[1].name, "suffix of 'auto'");
  EXPECT_EQ(candidates[1].steps.size(), 2u);
  EXPECT_EQ(candidates[1].costs.token_seconds, 0);
  assumptions.acceptance = 0.6;
  EXPECT_EQ(Names(assumptions).size(), 4u) << "and beside them what was asked for";
}

TEST(PlanCandidatesTest, TheAcceptanceOfAServerIsTheBestKnown) {
  PlanAssumptions assumptions;
  EXPECT_EQ(RemoteAcceptance(assumptions), 0.7);
  assumptions.recorded = {{{"auto", "suffix"}, {{4, 4, 0}}}};
  EXPECT_EQ(RemoteAcceptance(assumptions), 0.7) << "another drafter says nothing about a model";
  assumptions.recorded[{"auto", "model"}] = {{2, 1, 0}};
  EXPECT_EQ(RemoteAcceptance(assumptions), 0.5);
  assumptions.acceptance = 0.9;
  EXPECT_EQ(RemoteAcceptance(assumptions), 0.9);
}

}  // namespace
}  // namespace outrider
