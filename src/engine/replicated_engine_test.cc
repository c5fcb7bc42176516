#include "engine/replicated_engine.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/fake_engine.h"
#include "engine/padded_engine.h"

namespace outrider {
namespace {

using namespace std::chrono_literals;

constexpr int kVocabulary = 40;

EngineInfo Info() {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = 2;
  info.sequence_length = 90;
  info.max_batch = 16;
  info.micro_batch = 16;
  info.max_outputs = 8;
  return info;
}

class SourceOf : public LookaheadSource {
 public:
  using List = std::function<void(SeqId seq, std::vector<Token>* tokens)>;
  explicit SourceOf(List list) : list_(std::move(list)) {}
  void ListTokensAhead(SeqId seq, std::vector<Token>* tokens) override { list_(seq, tokens); }

 private:
  const List list_;
};

// Decodes only while the gate is open.
class GatedEngine : public FakeEngine {
 public:
  GatedEngine() : FakeEngine(Info(), Hashing(kVocabulary)) {}

  Status Decode(const Batch& batch) override {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    Status status = FakeEngine::Decode(batch);
    ++done_;
    changed_.notify_all();
    return status;
  }

  void Break(bool broken) {
    const std::lock_guard lock(mutex_);
    FailWhile(broken ? [](const Batch&) { return true; } : std::function<bool(const Batch&)>());
  }
  void Open(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  bool WaitUntilBegun(int batches) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return begun_ >= batches; });
  }
  bool WaitUntilDone(int batches) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return done_ >= batches; });
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0, done_ = 0;
  bool open_ = true;
};

// Rows for `tokens` of `seq`, the last `asking` of which want logits.
Batch Rows(const Engine& engine, const std::vector<Token>& tokens, int asking, SeqId seq = 0) {
  Batch batch;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool asks = i + static_cast<size_t>(asking) >= tokens.size();
    batch.Add({tokens[i], engine.Length(seq) + static_cast<Pos>(i), seq, asks});
  }
  return batch;
}

Token Favourite(Engine& engine, int row) {
  const auto logits = engine.Logits(row);
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The tokens that the model itself would say after `text`.
std::vector<Token> Truth(std::vector<Token> text, int count) {
  const auto script = FakeEngine::Hashing(kVocabulary);
  std::vector<Token> truth;
  for (int i = 0; i < count; ++i) text.push_back(truth.emplace_back(script(text)));
  return truth;
}

class ReplicatedEngineTest : public testing::Test {
 protected:
  // A text of one token, and the model's own continuation of it.
  const std::vector<Token> truth = Truth({7}, 40);
  GatedEngine first, second;
  ManualClock clock;
  ReplicatedEngine engine{{&first, &second}, clock};
};

TEST(ReplicatedPaddedEngineTest, AStepIsLaidOutAsTheReplicasComputeIt) {
  EngineInfo info = Info();
  info.memory_block = 64;
  FakeEngine first(info, FakeEngine::Hashing(kVocabulary)), second(info, FakeEngine::Hashing(kVocabulary));
  PaddedEngine padded_first(first, 4), padded_second(second, 4);
  ReplicatedEngine engine({&padded_first, &padded_second});
  const std::vector<SequenceRows> step = {{0, 5}, {1, 1}};
  StepLayout layout;
  engine.LayOut(step, &layout);
  EXPECT_EQ(layout.parts, std::vector<int>({4, 4, 4}));
  ASSERT_TRUE(engine.Decode(Rows(engine, {7, 8, 9}, 1)).ok());
  engine.LayOut(step, &layout);
  EXPECT_EQ(layout.parts, std::vector<int>({4, 4, 4}));
  EXPECT_FALSE(layout.certain) << "the next replica may miss tokens of either sequence";
  engine.LayOut(std::span(step).first(1), &layout);
  EXPECT_TRUE(layout.certain);
}

TEST_F(ReplicatedEngineTest, WhatComesNextIsBegunBeforeTheStepIsOver) {
  const std::vector<Token> draft(truth.begin(), truth.begin() + 3), ahead(truth.begin() + 3, truth.begin() + 9);
  first.Open(false);
  SourceOf source([&](SeqId seq, std::vector<Token>* tokens) {
    EXPECT_EQ(seq, 0);
    *tokens = ahead;
    if (second.begun() > 0) first.Open(true);  // the step ends only after the other replica has begun
  });
  engine.SetLookaheadSource(&source);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7, draft[0], draft[1], draft[2]}, 4)).ok());
  EXPECT_EQ(Favourite(engine, 3), ahead[0]);

  std::vector<Token> text = {7};
  text.insert(text.end(), truth.begin(), truth.begin() + 4);
  const auto begun = engine.BegunAhead(0, text);
  EXPECT_EQ(std::vector<Token>(begun.begin(), begun.end()), ahead);

  engine.SetLookaheadSource(nullptr);
  ASSERT_TRUE(engine.Decode(Rows(engine, ahead, 6)).ok());
  EXPECT_TRUE(engine.LastDecodeWasBegunAhead());
  for (int row = 0; row < 6; ++row) EXPECT_EQ(Favourite(engine, row), truth[static_cast<size_t>(row) + 4]);
  EXPECT_EQ(first.batches().size(), 1u);
  EXPECT_EQ(second.batches().size(), 1u);
  EXPECT_EQ(engine.Length(0), 10);
}

TEST_F(ReplicatedEngineTest, AWrongLookaheadIsForgotten) {
  const std::vector<Token> wrong = {1, 2, 3, 4, 5};
  SourceOf source2([&](SeqId, std::vector<Token>* tokens) { *tokens = wrong; });
  engine.SetLookaheadSource(&source2);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  ASSERT_TRUE(second.WaitUntilBegun(1));
  EXPECT_TRUE(engine.BegunAhead(0, std::vector<Token>{7, truth[0]}).empty());
  engine.SetLookaheadSource(nullptr);
  ASSERT_TRUE(engine.Decode(Rows(engine, {truth[0]}, 1)).ok());
  EXPECT_EQ(Favourite(engine, 0), truth[1]);
  EXPECT_EQ(first.batches().size(), 2u) << "the replica with the text goes on";
}

TEST_F(ReplicatedEngineTest, FewTokensWaitForHalfAStep) {
  // A step of 80 ms, of which the usual time knows a quarter: 20 ms.
  first.Open(false);
  bool over = false;
  SourceOf source3([&](SeqId, std::vector<Token>* tokens) {
    tokens->clear();
    if (over) return;
    clock.Advance(80ms);
    over = true;
    first.Open(true);
  });
  engine.SetLookaheadSource(&source3);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());

  first.Open(false);
  Duration passed = Duration::zero();
  SourceOf source4([&](SeqId, std::vector<Token>* tokens) {
    tokens->assign(truth.begin() + 1, truth.begin() + 3);
    if (passed <= 10ms) {
      EXPECT_EQ(second.begun(), 0) << Milliseconds(passed) << " ms";
    } else if (second.begun() > 0) {
      first.Open(true);
    }
    clock.Advance(1ms);
    passed += 1ms;
  });
  engine.SetLookaheadSource(&source4);
  ASSERT_TRUE(engine.Decode(Rows(engine, {truth[0]}, 1)).ok());
  EXPECT_FALSE(engine.LastDecodeWasBegunAhead());
  EXPECT_EQ(engine.BegunAhead(0, std::vector<Token>{7, truth[0], truth[1]}).size(), 2u);
}

TEST_F(ReplicatedEngineTest, StepsOfSeveralSequencesAreNotBegunAhead) {
  SourceOf source5([&](SeqId, std::vector<Token>*) { ADD_FAILURE() << "asked"; });
  engine.SetLookaheadSource(&source5);
  Batch batch;
  batch.Add({7, 0, 0, true});
  batch.Add({8, 0, 1, true});
  ASSERT_TRUE(engine.Decode(batch).ok());
  EXPECT_EQ(Favourite(engine, 1), Truth({8}, 1)[0]);
}

TEST_F(ReplicatedEngineTest, ALongTextIsReadBeforeAnythingIsBegunAhead) {
  std::vector<Token> text;
  for (int part = 0; part < 4; ++part) {
    const std::vector<Token> tokens(15, part);
    ASSERT_TRUE(engine.Decode(Rows(engine, tokens, 0)).ok());
    text.insert(text.end(), tokens.begin(), tokens.end());
  }
  const std::vector<Token> next = Truth(text, 9);
  first.Open(false);
  second.Open(false);
  SourceOf source6([&](SeqId, std::vector<Token>* tokens) { tokens->assign(next.begin() + 1, next.end()); });
  engine.SetLookaheadSource(&source6);
  std::thread opener([&] {
    EXPECT_TRUE(second.WaitUntilBegun(1));
    first.Open(true);
  });
  ASSERT_TRUE(engine.Decode(Rows(engine, {next[0]}, 1)).ok());
  opener.join();
  text.push_back(next[0]);
  text.push_back(next[1]);
  EXPECT_TRUE(engine.BegunAhead(0, text).empty()) << "a step would wait for the reading";
  second.Open(true);
  ASSERT_TRUE(second.WaitUntilDone(5)) << "60 tokens in batches of 16, and the row of the step";

  first.Open(false);
  SourceOf source7([&](SeqId, std::vector<Token>* tokens) {
    tokens->assign(next.begin() + 2, next.end());
    if (second.begun() == 6) first.Open(true);
  });
  engine.SetLookaheadSource(&source7);
  ASSERT_TRUE(engine.Decode(Rows(engine, {next[1]}, 1)).ok());
  engine.SetLookaheadSource(nullptr);
  ASSERT_TRUE(engine.Decode(Rows(engine, {next[2], next[3]}, 2)).ok());
  EXPECT_TRUE(engine.LastDecodeWasBegunAhead());
  EXPECT_EQ(Favourite(engine, 0), next[3]);
  EXPECT_EQ(Favourite(engine, 1), next[4]);
}

TEST_F(ReplicatedEngineTest, SeveralSequencesGoWhereLeastIsMissing) {
  const std::vector<Token> prompt(15, 3);
  ASSERT_TRUE(engine.Decode(Rows(engine, prompt, 1, 1)).ok());  // by the first
  first.Open(false);
  SourceOf source8([&](SeqId, std::vector<Token>* tokens) {
    tokens->assign(truth.begin(), truth.begin() + 5);
    if (second.begun() > 0) first.Open(true);
  });
  engine.SetLookaheadSource(&source8);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  engine.SetLookaheadSource(nullptr);
  ASSERT_TRUE(engine.Decode(Rows(engine, {truth[0], truth[1]}, 2)).ok());  // by the second
  ASSERT_TRUE(engine.LastDecodeWasBegunAhead());
  Batch both;
  both.Add({truth[2], 3, 0, true});
  both.Add({5, 15, 1, true});
  ASSERT_TRUE(engine.Decode(both).ok());
  EXPECT_EQ(first.batches().back().size(), 4) << "two tokens of the one are less than fifteen of the other";
  EXPECT_EQ(Favourite(engine, 0), truth[3]);
}

TEST_F(ReplicatedEngineTest, AFailureWhileWorkingAheadCostsNothing) {
  second.Break(true);
  second.Open(false);
  SourceOf source9([&](SeqId, std::vector<Token>* tokens) { tokens->assign(truth.begin(), truth.begin() + 5); });
  engine.SetLookaheadSource(&source9);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  engine.SetLookaheadSource(nullptr);
  ASSERT_FALSE(engine.BegunAhead(0, std::vector<Token>{7, truth[0]}).empty());
  second.Open(true);
  ASSERT_TRUE(engine.Decode(Rows(engine, {truth[0], truth[1]}, 2)).ok());
  EXPECT_FALSE(engine.LastDecodeWasBegunAhead());
  EXPECT_EQ(Favourite(engine, 1), truth[2]);
  EXPECT_EQ(engine.Length(0), 3);

  SourceOf source10([&](SeqId, std::vector<Token>*) { ADD_FAILURE() << "there is nobody left to work ahead"; });
  engine.SetLookaheadSource(&source10);
  ASSERT_TRUE(engine.Decode(Rows(engine, {truth[2]}, 1)).ok());
  EXPECT_EQ(second.begun(), 1) << "it is left alone";
}

TEST_F(ReplicatedEngineTest, TheLastReplicaIsNotLeftAlone) {
  first.Open(false);
  SourceOf source11([&](SeqId, std::vector<Token>* tokens) {
    tokens->assign(truth.begin(), truth.begin() + 5);
    if (second.begun() > 0) first.Open(true);
  });
  engine.SetLookaheadSource(&source11);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  // Now the second serves what it has begun, and the first works ahead; both fail.
  first.Break(true);
  SourceOf source12([&](SeqId, std::vector<Token>* tokens) { tokens->assign(truth.begin() + 5, truth.begin() + 10); });
  engine.SetLookaheadSource(&source12);
  const std::vector<Token> next(truth.begin(), truth.begin() + 5);
  ASSERT_TRUE(engine.Decode(Rows(engine, next, 5)).ok());
  ASSERT_TRUE(engine.LastDecodeWasBegunAhead());
  second.Break(true);
  EXPECT_FALSE(engine.Decode(Rows(engine, {truth[5], truth[6]}, 2)).ok());
  engine.SetLookaheadSource(nullptr);
  first.Break(false);
  second.Break(false);
  engine.TruncateTo(0, 0);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  EXPECT_EQ(Favourite(engine, 0), truth[0]);
}

TEST_F(ReplicatedEngineTest, AFailedStepIsTheCallersBusiness) {
  ASSERT_TRUE(engine.Decode(Rows(engine, {9}, 1, 1)).ok());
  first.FailWhile([](const Batch&) { return true; });
  EXPECT_FALSE(engine.Decode(Rows(engine, {7}, 1)).ok());
  first.FailWhile(nullptr);
  EXPECT_EQ(engine.TruncateTo(0, 0), 0);
  ASSERT_TRUE(engine.Decode(Rows(engine, {7}, 1)).ok());
  EXPECT_EQ(Favourite(engine, 0), truth[0]);
  ASSERT_TRUE(engine.Decode(Rows(engine, {Truth({9}, 1)[0]}, 1, 1)).ok());
  EXPECT_EQ(Favourite(engine, 0), Truth({9}, 2)[1]) << "other sequences are as before";
}

// Whatever is begun ahead, rightly or wrongly: the logits are those of one engine.
RC_GTEST_PROP(ReplicatedEngineProperty, ComputesAsOneEngineDoes, ()) {
  GatedEngine replicas[3];
  ManualClock clock;
  ReplicatedEngine engine({&replicas[0], &replicas[1], &replicas[2]}, clock);
  std::vector<std::vector<Token>> texts(2);
  const auto token = rc::gen::inRange<Token>(0, kVocabulary);
  std::vector<Token> ahead_tokens;
  SourceOf source13([&](SeqId, std::vector<Token>* ahead) {
    clock.Advance(1ms);
    *ahead = ahead_tokens;
  });
  engine.SetLookaheadSource(&source13);
  const auto script = FakeEngine::Hashing(kVocabulary);
  const int steps = *rc::gen::inRange(1, 30);
  int lookahead_steps = 0;
  for (int step = 0; step < steps; ++step) {
    Batch batch;
    std::vector<std::vector<Token>> after = texts;
    const bool both = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
    const SeqId alone = *rc::gen::inRange(0, 2);
    for (SeqId seq = 0; seq < 2; ++seq) {
      std::vector<Token>& text = after[static_cast<size_t>(seq)];
      if ((!both && seq != alone) || text.size() > 80) continue;
      const int rows = *rc::gen::inRange(1, 5);
      const bool asks = *rc::gen::weightedElement<bool>({{8, true}, {1, false}});
      for (int i = 0; i < rows; ++i) {
        // As if drafted: what was begun ahead, what the model says, or something else.
        const int kind = *rc::gen::inRange(0, 4);
        const auto place = static_cast<size_t>(i);
        const Token said = text.empty() ? 0 : script(text);
        const Token next = kind == 0 ? *token : kind == 1 && place < ahead_tokens.size() ? ahead_tokens[place] : said;
        batch.Add({next, static_cast<Pos>(text.size()), seq, asks || i + 1 == rows});
        text.push_back(next);
      }
    }
    if (batch.empty()) continue;
    // What may come after it.
    std::vector<Token> beyond = after[static_cast<size_t>(batch.rows().back().seq)];
    ahead_tokens.clear();
    const int length = *rc::gen::inRange(0, 24);
    for (int i = 0; i < length; ++i) {
      const bool right = *rc::gen::weightedElement<bool>({{8, true}, {1, false}});
      beyond.push_back(ahead_tokens.emplace_back(right ? script(beyond) : *token));
    }
    const int failing = *rc::gen::weightedElement<int>({{30, -1}, {1, 1}, {1, 2}});  // replicas that would
    for (int i = 0; i < 3; ++i) replicas[i].Break(i == failing);
    const bool decoded = engine.Decode(batch).ok();
    for (GatedEngine& replica : replicas) replica.Break(false);
    if (!decoded) {
      for (SeqId seq = 0; seq < 2; ++seq) {
        texts[static_cast<size_t>(seq)].clear();
        engine.TruncateTo(seq, 0);
      }
      continue;
    }
    lookahead_steps += engine.LastDecodeWasBegunAhead();
    for (int row = 0; row < batch.size(); ++row) {
      const BatchRow& its = batch.rows()[static_cast<size_t>(row)];
      if (!its.wants_logits) continue;
      const std::vector<Token>& text = after[static_cast<size_t>(its.seq)];
      RC_ASSERT(Favourite(engine, row) == script(std::span(text).first(static_cast<size_t>(its.pos) + 1)));
    }
    texts = after;
    for (SeqId seq = 0; seq < 2; ++seq) {
      std::vector<Token>& text = texts[static_cast<size_t>(seq)];
      RC_ASSERT(engine.Length(seq) == static_cast<Pos>(text.size()));
      if (text.size() > 2 && *rc::gen::inRange(0, 4) == 0) {
        text.resize(*rc::gen::weightedElement<bool>({{5, true}, {1, false}}) ? text.size() - 2 : 0);
        RC_ASSERT(engine.TruncateTo(seq, static_cast<Pos>(text.size())) == static_cast<Pos>(text.size()));
      }
    }
  }
  RC_CLASSIFY(lookahead_steps > 0, "begun ahead");
}

}  // namespace
}  // namespace outrider
