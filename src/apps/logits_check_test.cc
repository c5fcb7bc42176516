#include "apps/logits_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <functional>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

EngineInfo Info() {
  EngineInfo info;
  info.n_vocab = FakeTokenizer().vocabulary_size();
  info.n_sequences = 3;
  info.sequence_length = 512;
  info.max_batch = 512;
  info.micro_batch = 512;
  info.max_outputs = 64;
  return info;
}

// Computes slightly other logits for batches that `changes` chooses.
class InexactEngine : public FakeEngine {
 public:
  explicit InexactEngine(std::function<bool(const Batch&)> changes)
      : FakeEngine(Info(), Hashing(Info().n_vocab)), changes_(std::move(changes)) {}

  Status Decode(const Batch& batch) override {
    changed_ = changes_(batch);
    return FakeEngine::Decode(batch);
  }
  std::span<const float> Logits(int row) override {
    const auto logits = FakeEngine::Logits(row);
    copy_.assign(logits.begin(), logits.end());
    if (changed_) copy_[0] += 1e-3f;
    return copy_;
  }

 private:
  const std::function<bool(const Batch&)> changes_;
  bool changed_ = false;
  std::vector<float> copy_;
};

struct Findings {
  bool widths, slices, neighbours, rollbacks;
  auto operator<=>(const Findings&) const = default;
};

Findings Check(Engine& engine) {
  const FakeTokenizer tokenizer;
  LogitsCheck check(engine, tokenizer);
  EXPECT_TRUE(check.Prepare().ok());
  return {*check.InBatchesOf(4), *check.WithPromptInSlicesOf(7), *check.BesideOtherSequences(),
          *check.AfterRollbacks()};
}

TEST(LogitsCheckTest, AnExactEnginePasses) {
  for (const Rollback rollback : {Rollback::kDropCells, Rollback::kReplay}) {
    EngineInfo info = Info();
    info.rollback = rollback;
    FakeEngine engine(info, FakeEngine::Hashing(info.n_vocab));
    EXPECT_EQ(Check(engine), (Findings{true, true, true, true}));
  }
}

TEST(LogitsCheckTest, FindsEachWayInWhichABatchMayMatter) {
  const auto rows_of = [](const Batch& batch, SeqId seq) {
    return std::count_if(batch.rows().begin(), batch.rows().end(), [&](const BatchRow& row) { return row.seq == seq; });
  };
  InexactEngine wide([](const Batch& batch) { return batch.size() == 4; });
  EXPECT_EQ(Check(wide), (Findings{false, true, true, true}));
  InexactEngine mixed([&](const Batch& batch) { return rows_of(batch, 2) > 0 && rows_of(batch, 0) > 0; });
  EXPECT_EQ(Check(mixed), (Findings{true, true, false, true}));
  InexactEngine drafted([](const Batch& batch) { return batch.size() == 5; });
  EXPECT_EQ(Check(drafted), (Findings{true, true, true, false}));
  bool sliced = false;  // the prompt came in small slices
  InexactEngine slices([&](const Batch& batch) {
    if (batch.rows()[0].pos == 0) sliced = batch.size() == 7;
    return sliced;
  });
  EXPECT_EQ(Check(slices), (Findings{true, false, true, true}));
}

TEST(LogitsCheckTest, AnEngineThatFailsIsAnError) {
  FakeEngine engine(Info(), FakeEngine::Hashing(Info().n_vocab));
  const FakeTokenizer tokenizer;
  LogitsCheck check(engine, tokenizer);
  ASSERT_TRUE(check.Prepare().ok());
  engine.FailWhile([](const Batch& batch) { return batch.size() == 8; });
  EXPECT_FALSE(check.InBatchesOf(8).ok());
}

}  // namespace
}  // namespace outrider
