#include "spec/step_parts.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

std::vector<int> Parts(const std::vector<SequenceRows>& sequences) {
  std::vector<int> parts = {7};  // of the step before
  ListParts(sequences, &parts);
  return parts;
}

using Rows = std::vector<int>;

TEST(StepPartsTest, NeighboursOfEqualWidthAreOnePart) {
  EXPECT_EQ(Parts({}), Rows());
  EXPECT_EQ(Parts({{2, 5}}), Rows({5}));
  EXPECT_EQ(Parts({{0, 1}, {1, 1}, {2, 1}, {3, 1}}), Rows({4}));
  EXPECT_EQ(Parts({{1, 8}, {2, 8}}), Rows({16}));
}

TEST(StepPartsTest, GapsMakeParts) {
  EXPECT_EQ(Parts({{0, 1}, {1, 1}, {3, 1}}), Rows({2, 1}));
  EXPECT_EQ(Parts({{0, 2}, {2, 2}}), Rows({2, 2}));
}

TEST(StepPartsTest, WhoHasMoreRowsGoesOn) {
  EXPECT_EQ(Parts({{0, 1}, {1, 5}, {2, 1}}), Rows({3, 4}));
  EXPECT_EQ(Parts({{0, 4}, {1, 4}, {2, 1}}), Rows({3, 6})) << "neighbours still";
  EXPECT_EQ(Parts({{0, 5}, {1, 1}, {2, 32}, {3, 1}}), Rows({4, 4, 31})) << "neighbours no more";
  EXPECT_EQ(Parts({{0, 2}, {1, 5}, {2, 9}}), Rows({6, 6, 4}));
}

}  // namespace
}  // namespace outrider
