#include "drafters/planned_step.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

const std::vector<Token> kText(100), kLongText(300);

std::vector<int> PartsOf(const PlannedStep& step) {
  return {step.parts().begin(), step.parts().end()};
}

TEST(PlannedStepTest, RemembersAStepThatLookedAlike) {
  PlannedStep step(GapFilling::kNever);
  const SpeculationTurn turns[] = {{0, kText, 50}, {1, kLongText, 50}};
  step.Begin(turns, 0);
  EXPECT_EQ(step.context(), 200);
  EXPECT_EQ(step.Plain().last_rows, 0);
  EXPECT_EQ(step.Plain().fixed_rows(), 2);
  step.Done(std::vector<int>{2, 2});
  EXPECT_EQ(PartsOf(step), std::vector<int>{6});
  EXPECT_EQ(step.alike(), 1);

  step.Begin(turns, 0);
  EXPECT_EQ(step.Plain().last_rows, 6);
  step.Done(std::vector<int>{2, 2});
  EXPECT_EQ(step.alike(), 2);

  step.Begin(turns, 0);
  step.Done(std::vector<int>{1, 1});
  EXPECT_EQ(step.alike(), 1);
}

TEST(PlannedStepTest, AStepOfOtherSequencesOrPromptsIsAnotherOne) {
  PlannedStep step(GapFilling::kNever);
  const SpeculationTurn turns[] = {{0, kText, 50}, {1, kText, 50}};
  step.Begin(turns, 0);
  step.Done(std::vector<int>{0, 0});
  step.Begin(turns, 16);
  EXPECT_EQ(step.Plain().last_rows, 0);
  EXPECT_EQ(step.Plain().fixed_rows(), 18);
  step.Begin(std::span(turns).first(1), 0);
  EXPECT_EQ(step.Plain().last_rows, 0);
  step.Begin(turns, 0);
  EXPECT_EQ(step.Plain().last_rows, 2);
}

TEST(PlannedStepTest, UnequalRowsAreComputedInParts) {
  PlannedStep step(GapFilling::kNever);
  const SpeculationTurn turns[] = {{0, kText, 50}, {1, kText, 50}};
  step.Begin(turns, 0);
  step.Done(std::vector<int>{0, 3});
  EXPECT_EQ(PartsOf(step), (std::vector<int>{2, 3}));
  step.Begin(turns, 0);
  EXPECT_EQ(step.Plain().last_rows, 0) << "no shape to go back to";
}

TEST(PlannedStepTest, SequencesApartAreGroupsUnlessGapsAreFilled) {
  const SpeculationTurn turns[] = {{0, kText, 50}, {1, kText, 50}, {3, kText, 50}};
  PlannedStep apart(GapFilling::kNever), filled(GapFilling::kMost);
  apart.Begin(turns, 0);
  filled.Begin(turns, 0);
  EXPECT_EQ(apart.Plain().groups, 2);
  EXPECT_EQ(apart.Plain().plain_groups, 2);
  EXPECT_EQ(filled.Plain().groups, 2);
  EXPECT_EQ(filled.Plain().plain_groups, 1);
  EXPECT_TRUE(apart.parts_known());
  EXPECT_FALSE(filled.parts_known());
  filled.Begin(std::span(turns).first(2), 0);
  EXPECT_TRUE(filled.parts_known());
}

TEST(PlannedStepTest, AStepOfPromptsOnlyHasNoTurns) {
  PlannedStep step(GapFilling::kNever);
  step.Begin({}, 128);
  step.Done({});
  EXPECT_TRUE(step.turns().empty());
  EXPECT_EQ(step.Plain().fixed_rows(), 128);
}

}  // namespace
}  // namespace outrider
