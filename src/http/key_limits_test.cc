#include "http/key_limits.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

using std::chrono::seconds;

struct KeyLimitsTest : testing::Test {
  ApiKey Key(const char* name, KeyLimits limits) {
    ApiKey key = PlainKey(name);
    key.name = name;
    key.limits = limits;
    return key;
  }

  ManualClock clock;
  KeyLimiter limiter{clock};
};

TEST_F(KeyLimitsTest, RequestsComeBackOverAMinute) {
  const ApiKey alice = Key("alice", {.requests_per_minute = 6}), bob = Key("bob", {.requests_per_minute = 6});
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limiter.TakeRequest(&alice)) << i;
  const auto hit = limiter.TakeRequest(&alice);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(hit->status.message().find("requests-per-minute=6"), std::string::npos) << hit->status.message();
  EXPECT_NE(hit->status.message().find("alice"), std::string::npos);
  EXPECT_EQ(hit->retry_after_seconds, 10);
  EXPECT_FALSE(limiter.TakeRequest(&bob)) << "each key by itself";

  clock.Advance(seconds(hit->retry_after_seconds));
  EXPECT_FALSE(limiter.TakeRequest(&alice)) << "Retry-After is true";
  EXPECT_TRUE(limiter.TakeRequest(&alice));
  clock.Advance(seconds(3600));
  for (int i = 0; i < 6; ++i) EXPECT_FALSE(limiter.TakeRequest(&alice)) << i;
  EXPECT_TRUE(limiter.TakeRequest(&alice)) << "idle hours do not add up";
}

TEST_F(KeyLimitsTest, TokensAreChargedWhenTheyAreKnown) {
  const ApiKey alice = Key("alice", {.tokens_per_minute = 600});
  std::shared_ptr<KeyLimiter::Lease> lease;
  ASSERT_FALSE(limiter.Begin(&alice, &lease));
  lease->ChargeTokens(500);
  lease->ChargeTokens(200);
  lease = nullptr;
  const auto hit = limiter.Begin(&alice, &lease);
  ASSERT_TRUE(hit);
  EXPECT_EQ(lease, nullptr);
  EXPECT_NE(hit->status.message().find("tokens-per-minute=600"), std::string::npos) << hit->status.message();
  EXPECT_EQ(hit->retry_after_seconds, 11) << "101 tokens, ten a second";
  clock.Advance(seconds(hit->retry_after_seconds));
  EXPECT_FALSE(limiter.Begin(&alice, &lease));
}

TEST_F(KeyLimitsTest, SlotsAreHeldAsLongAsTheLease) {
  const ApiKey alice = Key("alice", {.slots = 2});
  std::shared_ptr<KeyLimiter::Lease> leases[3];
  EXPECT_FALSE(limiter.Begin(&alice, &leases[0]));
  EXPECT_FALSE(limiter.Begin(&alice, &leases[1]));
  const auto hit = limiter.Begin(&alice, &leases[2]);
  ASSERT_TRUE(hit);
  EXPECT_NE(hit->status.message().find("slots=2"), std::string::npos) << hit->status.message();
  EXPECT_GE(hit->retry_after_seconds, 1);
  leases[0] = nullptr;
  EXPECT_FALSE(limiter.Begin(&alice, &leases[2]));
}

TEST_F(KeyLimitsTest, NoLimitsAndNoKeys) {
  const ApiKey alice = Key("alice", {});
  for (const ApiKey* key : {&alice, static_cast<const ApiKey*>(nullptr)}) {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_FALSE(limiter.TakeRequest(key));
      std::shared_ptr<KeyLimiter::Lease> lease;
      EXPECT_FALSE(limiter.Begin(key, &lease));
      ASSERT_NE(lease, nullptr);
      lease->ChargeTokens(1'000'000);
    }
  }
}

}  // namespace
}  // namespace outrider
