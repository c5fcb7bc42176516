#include "scheduler/family.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

// Counts the rows of prompts by counting all rows.
struct FamilyTest : testing::Test {
  static EngineInfo Info() {
    EngineInfo info;
    info.n_vocab = 258;
    info.n_sequences = 3;
    info.sequence_length = 400;
    info.max_batch = 64;
    info.micro_batch = 32;
    info.max_outputs = 32;
    return info;
  }

  std::vector<Chunk> Run(uint64_t family, bool reuse_prefix, int count) {
    std::vector<std::shared_ptr<Generation>> generations;
    for (int i = 0; i < count; ++i) {
      GenerationRequest request;
      request.prompt = tokenizer.Tokenize(std::string(200, 'p'), false, SpecialTokens::kAsText);
      request.sampling.seed = 5 + static_cast<uint64_t>(i);
      request.max_tokens = 8;
      request.reuse_prefix = reuse_prefix;
      request.family = family;
      generations.push_back(*scheduler.Submit(std::move(request)));
    }
    while (scheduler.Step()) {
    }
    std::vector<Chunk> answers;
    for (auto& generation : generations) {
      answers.push_back(generation->Wait(std::chrono::milliseconds(0)).value_or(Chunk{}));
    }
    return answers;
  }

  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  FakeEngine engine{Info(), FakeEngine::Hashing(256)};
  Scheduler scheduler{engine, tokenizer, filters, {}};
};

TEST_F(FamilyTest, ThePromptIsReadOnceAndTheTextsAreTheSame) {
  const std::vector<Chunk> alone = Run(0, /*reuse_prefix=*/false, 3);
  const uint64_t rows_alone = scheduler.Stats().rows;
  FakeEngine other_engine(Info(), FakeEngine::Hashing(256));
  Scheduler other(other_engine, tokenizer, filters, {});
  std::vector<std::shared_ptr<Generation>> generations;
  for (uint64_t seed = 5; seed < 8; ++seed) {
    GenerationRequest request;
    request.prompt = tokenizer.Tokenize(std::string(200, 'p'), false, SpecialTokens::kAsText);
    request.sampling.seed = seed;
    request.max_tokens = 8;
    request.family = 1;
    generations.push_back(*other.Submit(std::move(request)));
  }
  while (other.Step()) {
  }
  for (size_t i = 0; i < 3; ++i) {
    const Chunk chunk = generations[i]->Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
    EXPECT_EQ(chunk.text, alone[i].text);
    ASSERT_TRUE(chunk.completion);
    EXPECT_EQ(chunk.completion->timings.cached_tokens, i == 0 ? 0 : 199);
    EXPECT_EQ(chunk.completion->timings.prompt_tokens, i == 0 ? 200 : 1);
  }
  EXPECT_EQ(rows_alone - other.Stats().rows, 2u * 199u);
}

TEST_F(FamilyTest, OthersGoOnIfTheFirstIsCancelled) {
  std::vector<std::shared_ptr<Generation>> generations;
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request;
    request.prompt = tokenizer.Tokenize(std::string(300, 'p'), false, SpecialTokens::kAsText);
    request.max_tokens = 2;
    request.family = 9;
    generations.push_back(*scheduler.Submit(std::move(request)));
  }
  scheduler.Step();
  EXPECT_EQ(scheduler.Stats().running, 1) << "the second waits for the first to read the prompt";
  generations[0]->Cancel();
  while (scheduler.Step()) {
  }
  const auto chunk = generations[1]->Wait(std::chrono::milliseconds(0));
  ASSERT_TRUE(chunk && chunk->completion);
  EXPECT_EQ(chunk->completion->timings.generated_tokens, 2);
}

TEST_F(FamilyTest, RequestsWithoutAFamilyDoNotWait) {
  for (int i = 0; i < 2; ++i) {
    GenerationRequest request;
    request.prompt = tokenizer.Tokenize(std::string(300, 'p'), false, SpecialTokens::kAsText);
    request.max_tokens = 2;
    ASSERT_TRUE(scheduler.Submit(std::move(request)).ok());
  }
  scheduler.Step();
  EXPECT_EQ(scheduler.Stats().running, 2);
}

TEST_F(FamilyTest, ProgressIsReportedIfAskedFor) {
  GenerationRequest request;
  request.prompt = tokenizer.Tokenize(std::string(200, 'p'), false, SpecialTokens::kAsText);
  request.max_tokens = 1;
  request.report_progress = true;
  auto generation = *scheduler.Submit(std::move(request));
  while (scheduler.Step()) {
  }
  const auto chunk = generation->Wait(std::chrono::milliseconds(0));
  ASSERT_TRUE(chunk && chunk->progress.size() > 2) << "the beginning, and at least two slices of 64 rows";
  EXPECT_EQ(chunk->progress.front().processed, 0);
  EXPECT_EQ(chunk->progress.front().ms, 0);
  EXPECT_EQ(chunk->progress.back().processed, 200);
  for (size_t i = 1; i < chunk->progress.size(); ++i) {
    EXPECT_GT(chunk->progress[i].processed, chunk->progress[i - 1].processed);
    EXPECT_EQ(chunk->progress[i].total, 200);
  }
}

}  // namespace
}  // namespace outrider
