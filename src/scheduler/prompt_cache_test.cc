#include "scheduler/prompt_cache.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

// `count` tokens that begin with `first` and count up.
std::vector<Token> Counting(Token first, int count) {
  std::vector<Token> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

SavedSlot Copy(std::vector<Token> tokens, size_t state_bytes = 100) {
  return {std::move(tokens), std::vector<uint8_t>(state_bytes)};
}

TEST(PromptCacheTest, FindsTheCopyThatSavesTheMost) {
  PromptCache cache(1 << 20, false);
  cache.Keep("", Copy(Counting(0, 10)));
  cache.Keep("", Copy(Counting(100, 50)));
  const SavedSlot* found = cache.Find("", {}, Counting(0, 30), 0);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->tokens, Counting(0, 10));
  EXPECT_EQ(cache.Find("", {}, Counting(500, 30), 0), nullptr);
  EXPECT_EQ(cache.Find("", {}, Counting(0, 30), 10), nullptr) << "a slot has as much";
  EXPECT_EQ(cache.Find("", {}, Counting(0, 30), 9), nullptr) << "restoring ten tokens for one";
  EXPECT_NE(cache.Find("", {}, Counting(0, 5), 0), nullptr) << "4 of the 10 help: the last one is decoded";
  EXPECT_EQ(cache.Find("", {}, Counting(100, 5), 0), nullptr) << "4 of 50 are too few";
}

TEST(PromptCacheTest, NobodyUsesTheCopiesOfOthers) {
  PromptCache cache(1 << 20, false);
  cache.Keep("ann", Copy(Counting(0, 10)));
  EXPECT_EQ(cache.Find("bob", {}, Counting(0, 30), 0), nullptr);
  EXPECT_EQ(cache.Find("", {}, Counting(0, 30), 0), nullptr);
  EXPECT_FALSE(cache.Holds("bob", {}, Counting(0, 10)));
  EXPECT_NE(cache.Find("ann", {}, Counting(0, 30), 0), nullptr);
}

TEST(PromptCacheTest, ACopyIsOnlyForRequestsWithItsAdapters) {
  const AdapterSet first = {{0, 1}}, weak = {{0, 0.5f}};
  PromptCache cache(1 << 20, false);
  SavedSlot copy = Copy(Counting(0, 10));
  copy.adapters = first;
  cache.Keep("ann", copy);
  EXPECT_EQ(cache.Find("ann", {}, Counting(0, 30), 0), nullptr);
  EXPECT_EQ(cache.Find("ann", weak, Counting(0, 30), 0), nullptr);
  EXPECT_FALSE(cache.Holds("ann", weak, Counting(0, 10)));
  EXPECT_NE(cache.Find("ann", first, Counting(0, 30), 0), nullptr);
  EXPECT_TRUE(cache.Holds("ann", first, Counting(0, 10)));
  cache.Keep("ann", Copy(Counting(0, 20)));
  EXPECT_EQ(cache.copies(), 2u) << "a longer copy of other adapters replaces nothing";
}

// Else a client could displace the copies of others by asking for ever other scales.
TEST(PromptCacheTest, AllSetsOfAdaptersOfAnOwnerCountTogether) {
  PromptCache cache(700, false);
  cache.Keep("bob", Copy(Counting(0, 10), 200));
  for (int i = 1; i < 10; ++i) {
    SavedSlot copy = Copy(Counting(0, 10), 100);
    copy.adapters = {{0, static_cast<float>(i)}};
    cache.Keep("ann", copy);
  }
  EXPECT_TRUE(cache.Holds("bob", {}, Counting(0, 10)));
}

TEST(PromptCacheTest, ALongerCopyReplacesThoseItContinues) {
  PromptCache cache(1 << 20, false);
  cache.Keep("", Copy(Counting(0, 10)));
  EXPECT_TRUE(cache.Holds("", {}, Counting(0, 10)));
  EXPECT_FALSE(cache.Holds("", {}, Counting(0, 11)));
  cache.Keep("", Copy(Counting(0, 20)));
  EXPECT_EQ(cache.copies(), 1u);
  EXPECT_TRUE(cache.Holds("", {}, Counting(0, 15)));
  cache.Keep("other", Copy(Counting(0, 30)));
  EXPECT_EQ(cache.copies(), 2u) << "another owner's stays";
}

TEST(PromptCacheTest, ARunningStateHelpsOnlyAsAWhole) {
  PromptCache cache(1 << 20, true);
  cache.Keep("", Copy(Counting(0, 10)));
  EXPECT_EQ(cache.Find("", {}, Counting(0, 10), 0), nullptr) << "the last token must be decoded";
  EXPECT_NE(cache.Find("", {}, Counting(0, 11), 0), nullptr);
  cache.Keep("", Copy(Counting(0, 20)));
  EXPECT_EQ(cache.copies(), 2u);
  EXPECT_NE(cache.Find("", {}, Counting(0, 15), 0), nullptr) << "the shorter copy still helps";
  EXPECT_FALSE(cache.Holds("", {}, Counting(0, 15)));
}

TEST(PromptCacheTest, WhatIsLargerThanTheLimitIsNotKept) {
  PromptCache cache(200, false);
  cache.Keep("", Copy(Counting(0, 10), 201));
  EXPECT_EQ(cache.copies(), 0u);
  EXPECT_EQ(cache.bytes(), 0u);
}

// One slot, in which conversations of several owners take turns.
class OneSlot {
 public:
  OneSlot(Rollback rollback, uint64_t cache_bytes)
      : engine_(Info(rollback), Letters), scheduler_(engine_, tokenizer_, filters_, Options(cache_bytes)) {}

  // The answer, and how many tokens of the prompt were not computed.
  std::pair<std::string, int> Ask(const std::string& owner, const std::string& prompt) {
    GenerationRequest request;
    request.owner = owner;
    request.prompt = tokenizer_.Tokenize(prompt, false, SpecialTokens::kAsText);
    request.sampling.temperature = 0;
    request.max_tokens = 8;
    auto generation = *scheduler_.Submit(std::move(request));
    while (scheduler_.Step()) {
    }
    const Chunk chunk = generation->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
    return {chunk.text, chunk.completion->timings.cached_tokens};
  }

  uint64_t cache_bytes() const { return scheduler_.Stats().cache_bytes; }

 private:
  // Of whole characters, so that a text has the tokens that were generated.
  static Token Letters(std::span<const Token> tokens) {
    static const FakeEngine::Script kHashing = FakeEngine::Hashing(26);
    return 'a' + kHashing(tokens);
  }

  static EngineInfo Info(Rollback rollback) {
    EngineInfo info;
    info.n_vocab = 258;
    info.n_sequences = 1;
    info.sequence_length = 400;
    info.max_batch = 64;
    info.micro_batch = 32;
    info.max_outputs = 32;
    info.rollback = rollback;
    return info;
  }

  static SchedulerOptions Options(uint64_t cache_bytes) {
    SchedulerOptions options;
    options.cache_bytes = cache_bytes;
    return options;
  }

  FakeTokenizer tokenizer_;
  FakeFilterFactory filters_;
  FakeEngine engine_;
  Scheduler scheduler_;
};

class PromptCacheInUseTest : public testing::TestWithParam<Rollback> {};

TEST_P(PromptCacheInUseTest, AConversationGoesOnFromItsCopyWithTheSameText) {
  OneSlot with(GetParam(), 1 << 20), without(GetParam(), 0);
  std::string first(40, 'a'), second(50, 'b');
  for (int turn = 0; turn < 3; ++turn) {
    for (std::string* conversation : {&first, &second}) {
      const auto [text, cached] = with.Ask("", *conversation);
      EXPECT_EQ(text, without.Ask("", *conversation).first);
      EXPECT_GE(cached, turn == 0 ? 0 : 47) << "turn " << turn;
      *conversation += text + "and then?";
    }
  }
  EXPECT_GT(with.cache_bytes(), 0u);
  EXPECT_EQ(without.cache_bytes(), 0u);
  EXPECT_EQ(with.Ask("somebody else", first).second, 0);
  EXPECT_GE(with.Ask("", first).second, 47) << "the owner still has it";
}

INSTANTIATE_TEST_SUITE_P(Memories, PromptCacheInUseTest, testing::Values(Rollback::kDropCells, Rollback::kReplay));

}  // namespace
}  // namespace outrider
