#include "http/auth.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(AuthTest, OnlyKnownKeysAreAccepted) {
  const ApiKeys keys({"secret", "other"});
  EXPECT_TRUE(keys.Accepts("Bearer secret", ""));
  EXPECT_TRUE(keys.Accepts("", "other"));
  for (const char* wrong :
       {"", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "bearer secret", "Basic secret"}) {
    EXPECT_FALSE(keys.Accepts(wrong, "")) << wrong;
  }
  EXPECT_FALSE(keys.Accepts("", ""));
  EXPECT_FALSE(ApiKeys().required());
  EXPECT_FALSE(ApiKeys({""}).Accepts("", "")) << "an empty key opens nothing";
}

}  // namespace
}  // namespace outrider
