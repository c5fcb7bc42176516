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

TEST(AuthTest, EqualMeansEqual) {
  EXPECT_TRUE(ConstantTimeEquals("", ""));
  EXPECT_TRUE(ConstantTimeEquals("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEquals("abcabc", "abc"));
  EXPECT_FALSE(ConstantTimeEquals("abc", "abcabc"));
  EXPECT_FALSE(ConstantTimeEquals("", "a"));
  EXPECT_FALSE(ConstantTimeEquals("a", ""));
}

TEST(AuthTest, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) EXPECT_TRUE(IsLoopback(host));
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "example.org", ""}) EXPECT_FALSE(IsLoopback(host));
}

}  // namespace
}  // namespace outrider
