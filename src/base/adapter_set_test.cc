#include "base/adapter_set.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(AdapterSetTest, AdaptersWithoutEffectAreNotInTheSet) {
  EXPECT_EQ(AdaptersOf({0, 0.5f, 0, -1}), (AdapterSet{{1, 0.5f}, {3, -1}}));
  EXPECT_EQ(AdaptersOf({0, 0}), AdapterSet());
}

TEST(AdapterSetTest, EverySetHasADescriptionOfItsOwn) {
  EXPECT_EQ(Describe({}), "");
  EXPECT_EQ(Describe({{1, 0.5f}, {3, -1}}), "1x0.5, 3x-1");
  EXPECT_NE(Describe({{0, 0.1f}}), Describe({{0, 0.10000001f}})) << "as many digits as it takes";
}

}  // namespace
}  // namespace outrider
