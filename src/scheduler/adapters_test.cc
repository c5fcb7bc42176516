// Requests with different adapters beside each other: each answer is what it would be alone, nothing that was computed
// or learned with one set of adapters is used with another, and no set keeps the others waiting.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "drafters/suffix_drafter.h"
#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "engine/replicated_engine.h"
#include "sampling/fake_filters.h"
#include "scheduler/memory_owner.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

const AdapterSet kNone, kFirst = {{0, 1}}, kWeak = {{0, 0.5f}}, kBoth = {{0, 1}, {1, -0.25f}};

EngineInfo Info(Rollback rollback = Rollback::kDropCells) {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = 4;
  info.sequence_length = 400;
  info.max_batch = 64;
  info.micro_batch = 32;
  info.max_outputs = 40;
  info.rollback = rollback;
  info.remembers = rollback == Rollback::kReplay;
  info.n_adapters = 2;
  return info;
}

// Texts that repeat themselves, so that a lookup finds something to draft.
FakeEngine::Script Repeating() {
  return [](std::span<const Token> tokens) -> Token { return (tokens.back() * 5 + 1) % 11 + 'a'; };
}

GenerationRequest Request(const std::string& prompt, const AdapterSet& adapters, int max_tokens = 40) {
  GenerationRequest request;
  request.prompt = FakeTokenizer().Tokenize(prompt, false, SpecialTokens::kAsText);
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.max_tokens = max_tokens;
  request.adapters = adapters;
  return request;
}

std::unique_ptr<Speculator> Suffix(const Engine& engine) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<SuffixDrafter>(engine.info().n_sequences, SuffixOptions{}));
  SpeculatorOptions options;
  options.always = true;
  return std::make_unique<Speculator>(std::move(drafters), CostCurve(), options, engine);
}

struct House {
  explicit House(EngineInfo info = Info(), bool speculates = false, FakeEngine::Script script = Repeating())
      : engine(std::move(info), std::move(script)),
        scheduler(engine, tokenizer, filters, {.prompt_slice = 16}, speculates ? Suffix(engine) : nullptr, clock) {}

  std::shared_ptr<Generation> Submit(GenerationRequest request) {
    auto generation = scheduler.Submit(std::move(request));
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return *generation;
  }

  Chunk Run(GenerationRequest request) {
    auto generation = Submit(std::move(request));
    RunAll();
    return generation->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
  }

  // A set of adapters keeps its turn for 40 ms.
  bool Step() {
    clock.Advance(step_time);
    return scheduler.Step();
  }

  void RunAll() {
    while (Step()) {
    }
  }

  Duration step_time = std::chrono::milliseconds(10);
  ManualClock clock;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  FakeEngine engine;
  Scheduler scheduler;
};

class AdaptersTest : public testing::TestWithParam<Rollback> {};

TEST_P(AdaptersTest, EachAnswerIsWhatItWouldBeAlone) {
  std::vector<GenerationRequest> requests;
  for (const char* prompt : {"one prompt", "one prompt and more", "another"}) {
    for (const AdapterSet& adapters : {kFirst, kNone, kBoth, kWeak, kFirst}) {
      requests.push_back(Request(prompt, adapters));
    }
  }
  std::vector<std::string> alone;
  for (const GenerationRequest& request : requests) alone.push_back(House(Info(GetParam())).Run(request).text);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[0], alone[3]) << "the scale matters";

  for (const bool speculates : {false, true}) {
    House house(Info(GetParam()), speculates);
    std::vector<std::shared_ptr<Generation>> generations;
    for (const GenerationRequest& request : requests) generations.push_back(house.Submit(request));
    house.RunAll();
    int accepted = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const Chunk answer = generations[i]->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
      EXPECT_EQ(answer.text, alone[i]) << "request " << i << (speculates ? " with drafts" : "");
      accepted += answer.timings.accepted_tokens;
    }
    EXPECT_EQ(accepted > 0, speculates) << "otherwise this proves nothing";
    EXPECT_GT(house.scheduler.Stats().adapter_switches, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Rollbacks, AdaptersTest, testing::Values(Rollback::kDropCells, Rollback::kReplay));

RC_GTEST_PROP(AdaptersTest, AnyMixOfRequestsGivesTheTextsOfEachAlone, ()) {
  const auto sets = std::vector<AdapterSet>{kNone, kFirst, kWeak, kBoth};
  const auto count = *rc::gen::inRange(2, 12);
  House house(Info(*rc::gen::element(Rollback::kDropCells, Rollback::kReplay)), *rc::gen::arbitrary<bool>());
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<Generation>> generations;
  for (int i = 0; i < count; ++i) {
    const std::string prompt(static_cast<size_t>(*rc::gen::inRange(1, 120)), static_cast<char>('a' + i % 2));
    requests.push_back(Request(prompt, *rc::gen::elementOf(sets), *rc::gen::inRange(1, 20)));
    generations.push_back(house.Submit(requests.back()));
    house.step_time = std::chrono::milliseconds(*rc::gen::inRange(0, 60));
    for (int steps = *rc::gen::inRange(0, 4); steps > 0; --steps) house.Step();
  }
  house.RunAll();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Chunk answer = generations[i]->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
    RC_ASSERT(answer.text == House().Run(requests[i]).text);
  }
}

TEST(AdaptersMemoryTest, APromptIsReusedWithTheSameAdaptersOnly) {
  House house;
  const std::string prompt(100, 'p');
  EXPECT_EQ(house.Run(Request(prompt, kFirst)).timings.cached_tokens, 0);
  EXPECT_EQ(house.Run(Request(prompt, kNone)).timings.cached_tokens, 0);
  EXPECT_EQ(house.Run(Request(prompt, kWeak)).timings.cached_tokens, 0);
  EXPECT_EQ(house.Run(Request(prompt, kFirst)).timings.cached_tokens, 99);
  EXPECT_EQ(house.Run(Request(prompt, kNone)).timings.cached_tokens, 99);
}

TEST(AdaptersMemoryTest, ASavedSlotKeepsItsAdapters) {
  House house;
  const std::string prompt(100, 'p');
  GenerationRequest request = Request(prompt, kFirst);
  request.slot = 2;
  const std::string text = house.Run(request).text;
  auto saved = house.scheduler.SaveSlot(2);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->adapters, kFirst);

  House other;
  ASSERT_TRUE(other.scheduler.RestoreSlot(1, *saved, "").ok());
  EXPECT_EQ(other.Run(Request(prompt, kNone)).timings.cached_tokens, 0);
  ASSERT_TRUE(other.scheduler.RestoreSlot(1, *saved, "").ok());
  const Chunk answer = other.Run(Request(prompt, kFirst));
  EXPECT_EQ(answer.timings.cached_tokens, 99);
  EXPECT_EQ(answer.text, text);
  ASSERT_TRUE(other.scheduler.RestoreSlot(1, *saved, "somebody").ok());
  EXPECT_EQ(other.Run(Request(prompt, kFirst)).timings.cached_tokens, 0) << "now it is somebody's";
}

// --cache-ram: with one slot, every request takes the place of one with other adapters.
TEST(AdaptersMemoryTest, CopiesInMainMemoryStayWithTheirAdapters) {
  EngineInfo info = Info();
  info.n_sequences = 1;
  FakeEngine engine(info, Repeating());
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  SchedulerOptions options;
  options.cache_bytes = 1 << 20;
  Scheduler scheduler(engine, tokenizer, filters, options);
  for (const int cached : {0, 99}) {
    for (const AdapterSet& adapters : {kFirst, kNone, kWeak, kBoth}) {
      const GenerationRequest request = Request(std::string(100, 'p'), adapters);
      auto generation = *scheduler.Submit(request);
      while (scheduler.Step()) {
      }
      const Chunk answer = generation->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
      EXPECT_EQ(answer.timings.cached_tokens, cached) << Describe(adapters);
      EXPECT_EQ(answer.text, House().Run(request).text) << Describe(adapters);
    }
  }
}

TEST(AdaptersMemoryTest, ASlotBelongsToItsClientWithAnyAdapters) {
  House house;
  GenerationRequest request = Request("a", kFirst);
  request.owner = "ann";
  request.slot = 2;
  house.Run(request);
  EXPECT_EQ(house.scheduler.Slots()[2].owner, "ann") << "who asks for /slots is compared with it";
}

TEST(AdaptersMemoryTest, WhatWasLearnedFromTextsStaysWithTheirAdapters) {
  const auto timings = [](House& house, const AdapterSet& adapters) {
    GenerationRequest request = Request("a prompt of its own", adapters, 60);
    request.reuse_prefix = false;
    return house.Run(request).timings;
  };
  const auto script = FakeEngine::Hashing(256);  // its texts hardly repeat themselves
  House house(Info(), /*speculates=*/true, script), fresh(Info(), /*speculates=*/true, script);
  EXPECT_LT(timings(house, kFirst).accepted_tokens, 10);
  EXPECT_GT(timings(house, kFirst).accepted_tokens, 20) << "its own text is known";
  const GenerationTimings after = timings(house, kNone), alone = timings(fresh, kNone);
  EXPECT_EQ(after.drafted_tokens, alone.drafted_tokens) << "nothing is proposed of other adapters";
  EXPECT_EQ(after.accepted_tokens, alone.accepted_tokens);
}

TEST(AdaptersMemoryTest, OwnersDifferByClientAndAdapters) {
  EXPECT_EQ(MemoryOwner("a", kNone), "a");
  EXPECT_NE(MemoryOwner("a", kFirst), MemoryOwner("a", kWeak));
  EXPECT_NE(MemoryOwner("a", kFirst), MemoryOwner("b", kFirst));
}

TEST(AdaptersMemoryTest, AnAdapterThatDoesNotExistIsRefused) {
  House house;
  const auto generation = house.scheduler.Submit(Request("a", {{2, 1}}));
  EXPECT_EQ(generation.status().field(), "lora");
  EXPECT_EQ(generation.status().message(), "adapter 2 does not exist; there are 2");
}

TEST(AdaptersFairnessTest, SetsTakeTurns) {
  House house;
  auto one = house.Submit(Request("a", kFirst, 200)), two = house.Submit(Request("b", kFirst, 200)),
       other = house.Submit(Request("c", kNone, 200));
  for (int i = 0; i < 42; ++i) house.Step();
  const auto tokens = [](Generation& g) { return g.Wait(std::chrono::milliseconds(0))->timings.generated_tokens; };
  EXPECT_NEAR(tokens(*one), 20, 4);
  EXPECT_NEAR(tokens(*two), 20, 4);
  EXPECT_NEAR(tokens(*other), 20, 4);
  EXPECT_NEAR(static_cast<double>(house.scheduler.Stats().adapter_switches), 42 / 4, 1) << "a turn is of four steps";
}

TEST(AdaptersFairnessTest, LongStepsAreEachATurn) {
  House house;
  house.step_time = std::chrono::milliseconds(100);
  house.Submit(Request("a", kFirst, 200));
  house.Submit(Request("b", kNone, 200));
  for (int i = 0; i < 20; ++i) house.Step();
  EXPECT_NEAR(static_cast<double>(house.scheduler.Stats().adapter_switches), 20, 2);
}

TEST(AdaptersFairnessTest, ALongPromptKeepsOtherSetsWaitingForOneSliceOnly) {
  House house;
  house.step_time = std::chrono::milliseconds(100);
  auto talker = house.Submit(Request("a", kFirst, 300));
  house.Step();
  house.Submit(Request(std::string(300, 'p'), kNone, 1));
  house.engine.ForgetBatches();
  for (int i = 0; i < 20; ++i) house.Step();
  int in_a_row = 0;
  for (const Batch& batch : house.engine.batches()) {
    in_a_row = batch.adapters() == kNone ? in_a_row + 1 : 0;
    EXPECT_LE(in_a_row, 1);
    EXPECT_LE(batch.size(), 16) << "the slice";
  }
}

TEST(AdaptersFairnessTest, EverNewRequestsOfOneSetDoNotKeepTheOthersWaiting) {
  House house;
  auto talker = house.Submit(Request("a", kFirst, 300));
  house.Step();
  for (int i = 0; i < 60; ++i) {
    house.Submit(Request("b", kNone, 1));
    house.Step();
  }
  EXPECT_GE(talker->Wait(std::chrono::milliseconds(0))->timings.generated_tokens, 24);
}

TEST(AdaptersFairnessTest, AloneASetIsNeverSwitched) {
  House house;
  house.Run(Request("a", kFirst));
  house.Run(Request("b", kFirst));
  EXPECT_EQ(house.scheduler.Stats().adapter_switches, 1u);
}

// A copy of the model may have computed the same tokens with other adapters.
TEST(AdaptersReplicaTest, CopiesOfTheModelDoNotMixAdapters) {
  FakeEngine one(Info(), Repeating()), two(Info(), Repeating());
  ReplicatedEngine engine({&one, &two});
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  Scheduler scheduler(engine, tokenizer, filters, {}, Suffix(engine));
  for (int round = 0; round < 3; ++round) {
    for (const AdapterSet& adapters : {kFirst, kNone, kBoth}) {
      const GenerationRequest request = Request("the same prompt", adapters);
      auto generation = *scheduler.Submit(request);
      while (scheduler.Step()) {
      }
      EXPECT_EQ(generation->Wait(std::chrono::milliseconds(0))->text, House().Run(request).text);
    }
  }
}

}  // namespace
}  // namespace outrider
