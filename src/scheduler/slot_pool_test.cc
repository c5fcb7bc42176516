#include "scheduler/slot_pool.h"

#include <gtest/gtest.h>

#include <chrono>

#include "scheduler/scheduler_test_util.h"

namespace outrider {
namespace {

constexpr TimePoint At(int seconds) {
  return TimePoint() + std::chrono::seconds(seconds);
}

struct SlotPoolTest : testing::Test {
  Sequence* Begin(GenerationRequest request, int seconds = 0) {
    PendingRequest pending = Pending(std::move(request));
    return pool.Begin(pending, At(seconds));
  }
  // A request that reads its prompt and ends.
  SeqId Run(GenerationRequest request, int ends_at) {
    Sequence* sequence = Begin(std::move(request), ends_at);
    Read(engine, *sequence);
    pool.End(*sequence, At(ends_at));
    return sequence->id;
  }

  FakeEngine engine{SmallEngine(3), FakeEngine::Hashing(256)};
  SlotPool pool{engine};
};

TEST_F(SlotPoolTest, ARequestGetsTheSlotThatSharesMost) {
  ASSERT_EQ(Run(Request("a dog"), 1), 0);
  ASSERT_EQ(Run(Request("the cow is here"), 2), 1) << "an empty slot that was used longer ago";
  Sequence* sequence = Begin(Request("the cow sits"), 3);
  EXPECT_EQ(sequence->id, 1);
  EXPECT_EQ(sequence->timings.cached_tokens, 8) << "\"the cow \"";
  EXPECT_EQ(sequence->timings.prompt_tokens, 4);
  EXPECT_EQ(engine.Length(1), 8) << "the rest has left the memory";
}

TEST_F(SlotPoolTest, TheLastTokenOfAPromptIsDecodedAgain) {
  Run(Request("again"), 1);
  const Sequence* sequence = Begin(Request("again"), 2);
  EXPECT_EQ(sequence->timings.cached_tokens, 4);
  EXPECT_EQ(engine.Length(sequence->id), 4);
}

TEST_F(SlotPoolTest, AmongEqualsTheOneThatWasUsedLongestAgo) {
  const SeqId first = Run(Request("a"), 5), second = Run(Request("b"), 4), third = Run(Request("c"), 6);
  EXPECT_EQ(std::vector({first, second, third}), std::vector({0, 1, 2}));
  EXPECT_EQ(Begin(Request("x"), 7)->id, second);
  EXPECT_EQ(Begin(Request("y"), 7)->id, first);
}

TEST_F(SlotPoolTest, NothingOfAnotherOwnerIsUsed) {
  GenerationRequest secret = Request("my secret is 42");
  secret.owner = "alice";
  Run(secret, 1);
  GenerationRequest guess = secret;
  guess.owner = "bob";
  guess.slot = 0;
  const Sequence* sequence = Begin(guess, 2);
  ASSERT_EQ(sequence->id, 0);
  EXPECT_EQ(sequence->timings.cached_tokens, 0);
  EXPECT_EQ(sequence->owner, "bob");
}

TEST_F(SlotPoolTest, ARequestMayAskForASlotAndForNoReuse) {
  Run(Request("prompt"), 1);
  GenerationRequest fixed = Request("prompt");
  fixed.slot = 2;
  EXPECT_EQ(Begin(fixed, 2)->id, 2);
  PendingRequest another = Pending(fixed);
  EXPECT_EQ(pool.Begin(another, At(3)), nullptr) << "it waits for that slot";
  EXPECT_NE(another.generation, nullptr) << "unchanged";
  GenerationRequest fresh = Request("prompt");
  fresh.reuse_prefix = false;
  fresh.slot = 0;
  EXPECT_EQ(Begin(fresh, 3)->timings.cached_tokens, 0);
  EXPECT_EQ(pool.busy(), 2);
}

TEST_F(SlotPoolTest, AnIdleSlotHasTheTokensThatAreInMemory) {
  Sequence* sequence = Begin(Request("prompt", 10));
  BeginAnswer(engine, *sequence, 'x');
  EXPECT_EQ(pool.TokensLeft(*sequence), 9);
  pool.End(*sequence, At(1));
  EXPECT_EQ(sequence->tokens, Tokens("prompt")) << "the newest token has no row yet";
  EXPECT_FALSE(sequence->busy());
}

TEST_F(SlotPoolTest, TheContextLimitsTheAnswerToo) {
  EXPECT_EQ(pool.TokensLeft(*Begin(Request(std::string(150, 'p')))), 50);
  EXPECT_EQ(pool.TokensLeft(*Begin(Request(std::string(150, 'p'), 100))), 50);
}

TEST_F(SlotPoolTest, OnlyIdleSlotsAreSavedRestoredAndErased) {
  Run(Request("kept"), 1);
  auto saved = pool.Save(0);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(*pool.Erase(0), 4);
  EXPECT_EQ(engine.Length(0), 0);
  ASSERT_TRUE(pool.Restore(1, *saved, "alice").ok());
  EXPECT_EQ(engine.Length(1), 4);
  GenerationRequest again = Request("kept on");
  again.owner = "alice";
  const Sequence* sequence = Begin(again, 2);
  EXPECT_EQ(sequence->id, 1);
  EXPECT_EQ(sequence->timings.cached_tokens, 4);

  EXPECT_EQ(pool.Save(1).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(pool.Restore(1, *saved, "").code(), StatusCode::kUnavailable);
  EXPECT_EQ(pool.Erase(1).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(pool.Erase(3).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(pool.Erase(-1).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider
