#include "base/step_layout.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(StepLayoutTest, AStateIsNeededForDraftsThatCannotBeTakenBackForFree) {
  StepLayout layout;
  EXPECT_FALSE(layout.NeedsSavedState(0));
  EXPECT_FALSE(layout.NeedsSavedState(1000));
  layout.free_rollback = 3;
  EXPECT_FALSE(layout.NeedsSavedState(3));
  EXPECT_TRUE(layout.NeedsSavedState(4));
  layout.free_rollback = 0;
  EXPECT_FALSE(layout.NeedsSavedState(0)) << "nothing can be rejected";
  EXPECT_TRUE(layout.NeedsSavedState(1));
}

}  // namespace
}  // namespace outrider
