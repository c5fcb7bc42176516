// A scheduler on a FakeEngine, as the HTTP layer's tests need it: with a thread that steps, and a gate that a test can
// close to hold an answer in the middle.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "api/api_test_util.h"
#include "engine/fake_engine.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {

// Lets tokens through one by one, or all of them.
class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void LetThrough(int tokens) {
    const std::lock_guard lock(mutex_);
    passes_ += tokens;
    changed_.notify_all();
  }

  // For the engine: waits until a token may be made.
  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ || passes_ > 0; });
    if (!open_) --passes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int passes_ = 0;
};

inline EngineInfo TestEngineInfo(int n_sequences) {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = n_sequences;
  info.sequence_length = 1000;
  info.max_batch = 512;
  info.micro_batch = 512;
  info.max_outputs = 32;
  return info;
}

// An engine that says the alphabet after any text, its scheduler, and what the API needs beside them.
struct TestScheduler {
  explicit TestScheduler(int n_sequences = 2, SchedulerOptions options = {})
      : engine(TestEngineInfo(n_sequences),
               [this](std::span<const Token> tokens) {
                 gate.Pass();
                 return After(tokens.back());
               }),
        scheduler(engine, context.tokenizer, filters, options) {
    scheduler.Start();
  }
  ~TestScheduler() {
    gate.Open();
    scheduler.Drain(Duration::zero());
    scheduler.WaitUntilStopped();
  }

  static Token After(Token token) { return token >= 'a' && token < 'z' ? token + 1 : 'a'; }

  // What it says after any prompt that does not end in a small letter.
  static std::string Says(int tokens) {
    std::string text;
    for (int i = 0; i < tokens; ++i) text += static_cast<char>('a' + i % 26);
    return text;
  }

  Gate gate;
  TestContext context;
  FakeFilterFactory filters;
  FakeEngine engine;
  Scheduler scheduler;
};

}  // namespace outrider
