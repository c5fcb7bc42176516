#include "engine/step_split.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace outrider {
namespace {

using Rows = std::vector<int>;

Rows Cut(StepSplit split, const std::vector<SequenceRows>& step) {
  Rows rows;
  (void)split.Cut(std::vector<SequenceRows>{{0, 3}, {5, 3}});  // nothing of the step before is left
  for (const StepSplit::Part& part : split.Cut(step)) rows.push_back(RowsOf(part));
  return rows;
}

Rows Equally(const std::vector<SequenceRows>& step, int max_rows = 512, int kept_tail = 0) {
  return Cut(StepSplit(max_rows, false, kept_tail), step);
}

TEST(StepSplitTest, NeighboursOfEqualWidthAreOnePart) {
  EXPECT_EQ(Equally({}), Rows());
  EXPECT_EQ(Equally({{2, 5}}), Rows({5}));
  EXPECT_EQ(Equally({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), Rows({4}));
  EXPECT_EQ(Equally({{1, 8}, {2, 8}}), Rows({16}));
}

TEST(StepSplitTest, GapsMakeParts) {
  EXPECT_EQ(Equally({{0, 1}, {1, 1}, {3, 1}}), Rows({2, 1}));
  EXPECT_EQ(Equally({{0, 2}, {2, 2}}), Rows({2, 2}));
}

TEST(StepSplitTest, WhoHasMoreRowsGoesOn) {
  EXPECT_EQ(Equally({{0, 1}, {1, 5}, {2, 1}}), Rows({3, 4}));
  EXPECT_EQ(Equally({{0, 4}, {1, 4}, {2, 1}}), Rows({3, 6})) << "neighbours still";
  EXPECT_EQ(Equally({{0, 5}, {1, 1}, {2, 32}, {3, 1}}), Rows({4, 4, 31})) << "neighbours no more";
  EXPECT_EQ(Equally({{0, 2}, {1, 5}, {2, 9}}), Rows({6, 6, 4}));
}

TEST(StepSplitTest, APartHasRoomForSoManyRows) {
  EXPECT_EQ(Equally({{0, 20}}, 8), Rows({8, 8, 4}));
  EXPECT_EQ(Equally({{0, 20}, {1, 20}}, 8), Rows({8, 8, 8, 8, 8}));
  EXPECT_EQ(Equally({{0, 3}, {1, 3}, {2, 3}}, 8), Rows({6, 3})) << "two of each fit, three do not";
}

TEST(StepSplitTest, SequencesAreNotCutWithinTheirLastRows) {
  EXPECT_EQ(Equally({{0, 1}, {1, 5}}, 512, 9), Rows({1, 5}));
  EXPECT_EQ(Equally({{0, 1}, {1, 12}}, 512, 9), Rows({2, 11})) << "eleven are more than nine";
  EXPECT_EQ(Equally({{0, 5}, {1, 1}}, 512, 9), Rows({5, 1}));
  EXPECT_EQ(Equally({{0, 5}, {1, 5}}, 512, 9), Rows({10}));
  EXPECT_EQ(Equally({{0, 20}}, 16, 9), Rows({11, 9})) << "sixteen would leave four";
}

TEST(StepSplitTest, WithOneMemoryABatchIsCutWhereAPartIsFull) {
  EXPECT_EQ(Cut(StepSplit(8, true, 0), {{0, 5}, {2, 7}, {3, 1}}), Rows({8, 5}));
  EXPECT_EQ(Cut(StepSplit(512, true, 0), {{0, 1}, {3, 6}}), Rows({7}));
}

TEST(StepSplitTest, TellsWhetherPartsKeepTheOrderOfTheBatch) {
  StepSplit split(512, false, 0);
  EXPECT_TRUE(InBatchOrder(split.Cut(std::vector<SequenceRows>{{0, 3}, {1, 3}})));
  EXPECT_TRUE(InBatchOrder(split.Cut(std::vector<SequenceRows>{{0, 3}, {2, 5}})));
  EXPECT_FALSE(InBatchOrder(split.Cut(std::vector<SequenceRows>{{0, 3}, {1, 1}})));
  EXPECT_TRUE(InBatchOrder(split.Cut(std::vector<SequenceRows>{{0, 2000}})));
}

TEST(StepSplitTest, GapsAreFilledByWhatAnotherPartCosts) {
  EXPECT_EQ(MaxGapsToFill(3, false), 1);
  EXPECT_EQ(MaxGapsToFill(2, false), 0) << "three rows may cost more than twice one";
  EXPECT_EQ(MaxGapsToFill(2, true), 1);
}

RC_GTEST_PROP(StepSplitTest, EveryRowIsInOnePart, ()) {
  std::vector<SequenceRows> step;
  for (SeqId seq = 0; seq < 8; ++seq) {
    const int rows = *rc::gen::inRange(0, 40);
    if (rows > 0) step.push_back({seq, rows});
  }
  const int max_rows = *rc::gen::inRange(8, 64);
  StepSplit split(max_rows, *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0, 7));
  std::vector<int> done(step.size(), 0);
  for (const StepSplit::Part& part : split.Cut(step)) {
    RC_ASSERT(RowsOf(part) > 0);
    RC_ASSERT(RowsOf(part) <= max_rows);
    for (const StepSplit::Slice& slice : part) {
      RC_ASSERT(slice.first_row == done[slice.sequence]);
      done[slice.sequence] += slice.rows;
    }
  }
  for (size_t i = 0; i < step.size(); ++i) RC_ASSERT(done[i] == step[i].rows);
}

}  // namespace
}  // namespace outrider
