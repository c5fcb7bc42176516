#include "engine/padded_engine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "engine/fake_engine.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 50;
constexpr Pos kBlock = 16;

EngineInfo Info() {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = 3;
  info.sequence_length = 100;
  info.max_batch = 32;
  info.micro_batch = 32;
  info.max_outputs = 32;
  info.memory_block = kBlock;
  info.exactness = "it depends";
  return info;
}

// Logits depend on everything a kernel may look at: the number of rows, of sequences, of outputs, of blocks in memory.
class ShapeDependentEngine : public FakeEngine {
 public:
  ShapeDependentEngine() : FakeEngine(Info(), Hashing(kVocabulary)) {}

  Status Decode(const Batch& batch) override {
    int outputs = 0, sequences = 0;
    Pos last = 0;
    SeqId before = -1;
    for (const BatchRow& row : batch.rows()) {
      outputs += row.wants_logits;
      sequences += row.seq != before;
      before = row.seq;
      last = std::max(last, row.pos);
    }
    shape_ = static_cast<float>(((batch.size() * 40 + outputs) * 4 + sequences) * 100 + last / kBlock);
    return FakeEngine::Decode(batch);
  }
  std::span<const float> Logits(int row) override {
    const auto logits = FakeEngine::Logits(row);
    shaped_.assign(logits.begin(), logits.end());
    for (float& logit : shaped_) logit += shape_;
    return shaped_;
  }

 private:
  float shape_ = 0;
  std::vector<float> shaped_;
};

std::vector<float> Copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

// Logits of every row of `tokens`, decoded one by one.
std::vector<std::vector<float>> OneByOne(const std::vector<Token>& tokens) {
  ShapeDependentEngine engine;
  PaddedEngine padded(engine, 8);
  std::vector<std::vector<float>> logits;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Batch batch;
    batch.Add({tokens[i], static_cast<Pos>(i), 0, true});
    EXPECT_TRUE(padded.Decode(batch).ok());
    logits.push_back(Copy(padded.Logits(0)));
  }
  return logits;
}

// Random batches over three sequences with the same tokens, some taken back: every row is as when decoded alone.
RC_GTEST_PROP(PaddedEngineTest, TheShapeOfABatchDoesNotShow, ()) {
  const auto tokens = *rc::gen::container<std::vector<Token>>(60, rc::gen::inRange<Token>(0, kVocabulary));
  const auto expected = OneByOne(tokens);
  ShapeDependentEngine engine;
  PaddedEngine padded(engine, 8);
  const int steps = *rc::gen::inRange(1, 20);
  for (int step = 0; step < steps; ++step) {
    Batch batch;
    for (SeqId seq = 0; seq < 3; ++seq) {
      const Pos length = padded.TruncateTo(seq, std::max(0, padded.Length(seq) - *rc::gen::inRange(0, 4)));
      const Pos rows = std::min(*rc::gen::inRange(0, 11), 60 - length);
      for (Pos i = 0; i < rows; ++i) {
        batch.Add({tokens[static_cast<size_t>(length + i)], length + i, seq, *rc::gen::arbitrary<bool>()});
      }
    }
    RC_ASSERT(padded.Decode(batch).ok());
    for (int row = 0; row < batch.size(); ++row) {
      const BatchRow& asked = batch.rows()[static_cast<size_t>(row)];
      if (asked.wants_logits) RC_ASSERT(Copy(padded.Logits(row)) == expected[static_cast<size_t>(asked.pos)]);
      RC_ASSERT(padded.Length(asked.seq) > asked.pos);
    }
    for (SeqId seq = 0; seq < 3; ++seq) {  // no padding is left
      const auto& memory = engine.memory(seq);
      RC_ASSERT(std::equal(memory.begin(), memory.end(), tokens.begin()));
    }
  }
}

TEST(PaddedEngineTest, WithoutPaddingTheShapeShows) {
  ShapeDependentEngine engine;
  Batch one, two;
  one.Add({1, 0, 0, true});
  two.Add({1, 0, 0, true});
  two.Add({2, 1, 0, true});
  ASSERT_TRUE(engine.Decode(one).ok());
  const auto alone = Copy(engine.Logits(0));
  engine.TruncateTo(0, 0);
  ASSERT_TRUE(engine.Decode(two).ok());
  EXPECT_NE(Copy(engine.Logits(0)), alone);
}

TEST(PaddedEngineTest, PaddingFitsAtTheEndOfTheContext) {
  ShapeDependentEngine engine;
  PaddedEngine padded(engine, 8);
  EXPECT_EQ(padded.info().sequence_length, 92);
  EXPECT_EQ(padded.info().exactness, "");
  for (Pos pos = 0; pos < 92; ++pos) {
    Batch batch;
    batch.Add({3, pos, 1, true});
    ASSERT_TRUE(padded.Decode(batch).ok());  // FakeEngine aborts on rows past its length
  }
  EXPECT_EQ(padded.Length(1), 92);
}

TEST(PaddedEngineTest, AFailureIsPassedOn) {
  ShapeDependentEngine engine;
  PaddedEngine padded(engine, 8);
  engine.FailWhile([](const Batch& batch) { return batch.rows()[0].seq == 1; });
  Batch batch;
  batch.Add({1, 0, 0, true});
  batch.Add({1, 0, 1, true});
  EXPECT_FALSE(padded.Decode(batch).ok()) << "in its second part";
  batch.Clear();
  batch.Add({1, 0, 2, true});
  EXPECT_TRUE(padded.Decode(batch).ok());
}

TEST(PaddedEngineTest, ASavedSequenceMustLeaveRoomForThePadding) {
  ShapeDependentEngine engine;
  PaddedEngine padded(engine, 8);
  Batch batch;
  for (Pos pos = 0; pos < 30; ++pos) batch.Add({3, pos, 0, false});
  ASSERT_TRUE(padded.Decode(batch).ok());
  const auto saved = padded.SaveSequence(0);
  ASSERT_TRUE(saved.ok());
  EXPECT_TRUE(padded.RestoreSequence(1, *saved, 30).ok());
  EXPECT_EQ(padded.Length(1), 30);
  EXPECT_FALSE(padded.RestoreSequence(1, *saved, 95).ok());
}

}  // namespace
}  // namespace outrider
