#include "drafters/planned_step.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"

namespace outrider {
namespace {

const std::vector<Token> kText(100), kLongText(300);

// Computes sequences of unequal rows in two parts.
class SplittingEngine : public FakeEngine {
 public:
  SplittingEngine() : FakeEngine(EngineInfo{}, nullptr) {}
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const override {
    layout->parts.clear();
    for (size_t i = 0; i < step.size(); ++i) {
      if (i > 0 && step[i].rows == step[i - 1].rows) {
        layout->parts.back() += step[i].rows;
      } else {
        layout->parts.push_back(step[i].rows);
      }
    }
  }
};

using Rows = std::vector<int>;

TEST(PlannedStepTest, RemembersAStepThatLookedAlike) {
  const SplittingEngine engine;
  PlannedStep step(engine);
  const DraftableSequence sequences[] = {{0, kText, 50}, {1, kLongText, 50}};
  step.Begin(sequences, {});
  EXPECT_EQ(step.context(), 200);
  EXPECT_EQ(step.Plain().last_rows, 0);
  EXPECT_EQ(step.Plain().fixed_rows(), 2);
  step.SetDrafts(Rows{2, 2});
  step.Done();
  EXPECT_EQ(step.layout().parts, Rows{6});
  EXPECT_EQ(step.alike_in_a_row(), 1);

  step.Begin(sequences, {});
  EXPECT_EQ(step.Plain().last_rows, 6);
  step.SetDrafts(Rows{2, 2});
  step.Done();
  EXPECT_EQ(step.alike_in_a_row(), 2);

  step.Begin(sequences, {});
  step.SetDrafts(Rows{1, 1});
  step.Done();
  EXPECT_EQ(step.alike_in_a_row(), 1);
}

TEST(PlannedStepTest, AStepOfOtherSequencesOrPromptsIsAnotherOne) {
  const SplittingEngine engine;
  PlannedStep step(engine);
  const DraftableSequence sequences[] = {{0, kText, 50}, {1, kText, 50}};
  const SequenceRows prompt[] = {{2, 16}};
  step.Begin(sequences, {});
  step.SetDrafts(Rows{0, 0});
  step.Done();
  step.Begin(sequences, prompt);
  EXPECT_TRUE(step.has_others());
  EXPECT_EQ(step.Plain().last_rows, 0);
  EXPECT_EQ(step.Plain().fixed_rows(), 18);
  step.Begin(std::span(sequences).first(1), {});
  EXPECT_EQ(step.Plain().last_rows, 0);
  step.Begin(sequences, {});
  EXPECT_EQ(step.Plain().last_rows, 2);
}

TEST(PlannedStepTest, AStepOfSeveralPartsHasNoShapeToGoBackTo) {
  const SplittingEngine engine;
  PlannedStep step(engine);
  const DraftableSequence sequences[] = {{0, kText, 50}, {1, kText, 50}};
  step.Begin(sequences, {});
  step.SetDrafts(Rows{0, 3});
  step.Done();
  EXPECT_EQ(step.layout().parts, (Rows{1, 4}));
  step.Begin(sequences, {});
  EXPECT_EQ(step.Plain().last_rows, 0);
}

TEST(PlannedStepTest, TheEngineIsAskedForTheRowsInTheOrderOfSequences) {
  const SplittingEngine engine;
  PlannedStep step(engine);
  const DraftableSequence sequences[] = {{1, kText, 50, 2}, {4, kText, 50}};
  const SequenceRows prompts[] = {{0, 16}, {3, 9}};
  step.Begin(sequences, prompts);
  step.SetDrafts(Rows{3, 0});
  step.Done();
  EXPECT_EQ(step.layout().parts, (Rows{16, 5, 9, 1}));
}

TEST(PlannedStepTest, AStepOfPromptsOnlyHasNothingToDraftFor) {
  const SplittingEngine engine;
  PlannedStep step(engine);
  const SequenceRows prompts[] = {{0, 128}};
  step.Begin({}, prompts);
  step.SetDrafts({});
  step.Done();
  EXPECT_TRUE(step.sequences().empty());
  EXPECT_EQ(step.Plain().fixed_rows(), 128);
}

}  // namespace
}  // namespace outrider
