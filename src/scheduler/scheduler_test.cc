#include "scheduler/scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "scheduler/scheduler_test_util.h"

namespace outrider {
namespace {

// An engine, everything around it, and no thread: tests call Step.
struct House {
  explicit House(EngineInfo info = SmallEngine(), FakeEngine::Script script = FakeEngine::Hashing(256),
                 SchedulerOptions options = {})
      : engine(std::move(info), std::move(script)), scheduler(engine, tokenizer, filters, options, nullptr, clock) {}

  std::shared_ptr<Generation> Submit(GenerationRequest request) {
    auto generation = scheduler.Submit(std::move(request));
    EXPECT_TRUE(generation.ok()) << generation.status().message();
    return generation.ok() ? *generation : nullptr;
  }

  void RunAll() {
    while (scheduler.Step()) clock.Advance(std::chrono::milliseconds(1));
  }

  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  ManualClock clock;
  FakeEngine engine;
  Scheduler scheduler;
};

// The result so far, without waiting.
Chunk Collect(Generation& generation) {
  return generation.Wait(std::chrono::milliseconds(0)).value_or(Chunk{});
}

// What the engine says on its own, one token after the other.
std::string PlainRun(const FakeEngine::Script& script, const std::string& prompt, int count) {
  std::vector<Token> tokens = Tokens(prompt);
  std::vector<std::string> pieces;
  std::string text;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(script(tokens));
    text += FakeTokenizer().Piece(tokens.back(), false);
  }
  return text;
}

TEST(SchedulerTest, RecitesAnAnswerAndEnds) {
  House house(SmallEngine(), FakeEngine::Reciting("Hello!", 3));
  auto generation = house.Submit(Request("abc"));
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.text, "Hello!");
  ASSERT_TRUE(chunk.completion);
  EXPECT_EQ(chunk.completion->reason, FinishReason::kEndOfText);
  EXPECT_EQ(chunk.completion->timings.prompt_tokens, 3);
  EXPECT_EQ(chunk.completion->timings.generated_tokens, 7) << "the end token counts";
}

// libllama computes a batch in parts of equally many rows per sequence; a piece of a second prompt that only fills the
// batch up would make small parts of both.
TEST(SchedulerTest, PromptsShareABatchWholeOrNotAtAll) {
  const auto rows_of_first_batches = [](const std::string& first, const std::string& second) {
    House house;  // 32 rows at once
    house.Submit(Request(first, 1));
    house.Submit(Request(second, 1));
    house.RunAll();
    std::vector<std::pair<int, int>> rows;
    for (const Batch& batch : house.engine.batches()) {
      const auto of_first = std::count_if(batch.rows().begin(), batch.rows().end(), [](auto& r) { return r.seq == 0; });
      rows.emplace_back(of_first, batch.size() - of_first);
    }
    return rows;
  };
  using Rows = std::vector<std::pair<int, int>>;
  EXPECT_EQ(rows_of_first_batches(std::string(20, 'a'), std::string(20, 'b')), (Rows{{20, 0}, {0, 20}}));
  EXPECT_EQ(rows_of_first_batches(std::string(12, 'a'), std::string(12, 'b')), (Rows{{12, 12}}));
  EXPECT_EQ(rows_of_first_batches(std::string(20, 'a'), std::string(5, 'b')), (Rows{{20, 5}}));
  EXPECT_EQ(rows_of_first_batches(std::string(10, 'a'), std::string(40, 'b')), (Rows{{10, 10}, {0, 30}}));
  EXPECT_EQ(rows_of_first_batches(std::string(40, 'a'), std::string(5, 'b')), (Rows{{32, 0}, {8, 5}}));
}

TEST(SchedulerTest, StopsAtMaxTokensStopStringsAndTheEndOfTheContext) {
  House house(SmallEngine(1, 20), FakeEngine::Reciting("one two three four five six", 3));
  auto generation = house.Submit(Request("abc", 5));
  house.RunAll();
  Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.text, "one t");
  EXPECT_EQ(chunk.completion->reason, FinishReason::kLength);

  GenerationRequest with_stop = Request("abc");
  with_stop.stop = {"thr"};
  generation = house.Submit(with_stop);
  house.RunAll();
  chunk = Collect(*generation);
  EXPECT_EQ(chunk.text, "one two ");
  EXPECT_EQ(chunk.completion->reason, FinishReason::kStopString);
  EXPECT_EQ(chunk.completion->stop_string, "thr");

  generation = house.Submit(Request("abc"));
  house.RunAll();
  chunk = Collect(*generation);
  EXPECT_EQ(chunk.text, "one two three fou") << "17 tokens after a prompt of 3 fill a context of 20";
  EXPECT_EQ(chunk.completion->reason, FinishReason::kLength);
}

TEST(SchedulerTest, NoTokensMeansThePromptIsOnlyDecoded) {
  House house(SmallEngine(1));
  auto generation = house.Submit(Request("abc", 0));
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.text, "");
  EXPECT_EQ(chunk.completion->reason, FinishReason::kLength);
  EXPECT_EQ(chunk.completion->timings.generated_tokens, 0);
  EXPECT_EQ(house.engine.memory(0), Tokens("abc"));
}

TEST(SchedulerTest, PromptsEnterInSlicesBesideRunningSequences) {
  SchedulerOptions options;
  options.prompt_slice = 8;
  House house(SmallEngine(), FakeEngine::Hashing(256), options);
  auto first = house.Submit(Request("ab", 60));
  for (int i = 0; i < 4; ++i) house.scheduler.Step();
  auto second = house.Submit(Request(std::string(50, 'x'), 3));
  const size_t before = house.engine.batches().size();
  for (int i = 0; i < 7; ++i) house.scheduler.Step();
  for (size_t i = before; i < before + 7; ++i) {
    int rows_of_first = 0, rows_of_second = 0;
    for (const BatchRow& row : house.engine.batches()[i].rows()) (row.seq == 0 ? rows_of_first : rows_of_second)++;
    EXPECT_EQ(rows_of_first, 1) << "the running sequence goes on in every step";
    EXPECT_LE(rows_of_second, 8);
  }
  house.RunAll();
  EXPECT_EQ(Collect(*second).text.empty(), false);
}

TEST(SchedulerTest, APromptAloneUsesTheWholeMicroBatch) {
  House house;
  house.Submit(Request(std::string(50, 'x'), 1));
  house.scheduler.Step();
  EXPECT_EQ(house.engine.batches()[0].size(), 32);
}

TEST(SchedulerTest, AFollowUpDecodesOnlyWhatIsNew) {
  House house;
  auto generation = house.Submit(Request("shared beginning, first end", 4));
  house.RunAll();
  Collect(*generation);
  generation = house.Submit(Request("shared beginning, second", 4));
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.completion->timings.cached_tokens, 18);
  EXPECT_EQ(chunk.completion->timings.prompt_tokens, 6);
  EXPECT_EQ(chunk.completion->slot, 0) << "it went where the prefix is";

  GenerationRequest fresh = Request("shared beginning, second", 4);
  fresh.reuse_prefix = false;
  auto again = house.Submit(fresh);
  house.RunAll();
  const Chunk chunk_again = Collect(*again);
  EXPECT_EQ(chunk_again.completion->timings.cached_tokens, 0);
  EXPECT_EQ(chunk_again.text, chunk.text);
}

GenerationRequest RequestOf(const std::string& owner, const std::string& prompt, SeqId slot = -1) {
  GenerationRequest request = Request(prompt, 2);
  request.owner = owner;
  request.slot = slot;
  return request;
}

// How many tokens were cached says nothing about the prompts of others, however well they are guessed.
TEST(SchedulerTest, OnlyTheSameOwnerContinuesFromAPrompt) {
  for (const EngineInfo& info : {SmallEngine(1), SmallEngine(3)}) {
    House house(info);
    const auto cached = [&](const GenerationRequest& request) {
      auto generation = house.Submit(request);
      house.RunAll();
      return Collect(*generation).completion->timings.cached_tokens;
    };
    EXPECT_EQ(cached(RequestOf("anna", "the password is swordfish")), 0);
    EXPECT_EQ(cached(RequestOf("bert", "the password is swordfish")), 0);
    EXPECT_EQ(cached(RequestOf("bert", "the password is wrong")), 16) << "its own";
    for (SeqId slot = 0; slot < info.n_sequences; ++slot) {
      EXPECT_EQ(cached(RequestOf("", "the password is swordfish", slot)), 0) << "without a name is an owner, too";
    }
    EXPECT_EQ(cached(RequestOf("", "the password is sw")), 17);
  }
}

// The slot that a request gets depends on its owner's prompts and on when slots were last used, not on what others
// said.
TEST(SchedulerTest, TheSlotOfARequestDoesNotDependOnPromptsOfOthers) {
  const auto slots_of_bert = [](const std::string& annas_prompt) {
    House house(SmallEngine(3));
    std::vector<SeqId> slots;
    const auto run = [&](const GenerationRequest& request) {
      auto generation = house.Submit(request);
      house.RunAll();
      return Collect(*generation).completion->slot;
    };
    run(RequestOf("anna", annas_prompt));
    for (const char* prompt : {"the password is swordfish", "another", "the password is", "the"}) {
      slots.push_back(run(RequestOf("bert", prompt)));
    }
    return slots;
  };
  EXPECT_EQ(slots_of_bert("the password is swordfish"), slots_of_bert("nothing of the kind"));
}

TEST(SchedulerTest, AMemoryThatCannotGoBackStartsOver) {
  EngineInfo info = SmallEngine(1);
  info.rollback = Rollback::kNone;
  House house(info);
  auto generation = house.Submit(Request("shared beginning, first", 4));
  house.RunAll();
  Collect(*generation);
  generation = house.Submit(Request("shared beginning, second", 4));
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.completion->timings.cached_tokens, 0);
  EXPECT_EQ(chunk.completion->timings.prompt_tokens, 24);
}

TEST(SchedulerTest, ARunningStateGoesBackToWhatItRemembers) {
  EngineInfo info = SmallEngine(1, 1000);
  info.rollback = Rollback::kReplay;
  info.remembers = true;
  info.max_batch = info.micro_batch = 512;
  House house(info);
  const std::string prompt(400, 'p');
  const auto run = [&](const std::string& text) {
    auto generation = house.Submit(Request(text, 4));
    house.RunAll();
    return Collect(*generation).completion->timings.cached_tokens;
  };
  EXPECT_EQ(run(prompt), 0);
  EXPECT_EQ(run(prompt), 400 - 32) << "asked again: from shortly before its end";
  EXPECT_EQ(run(prompt + "and more"), 400) << "continued: from its end";
  EXPECT_EQ(run(std::string(390, 'p') + "something else"), 400 - 32);
  EXPECT_EQ(run("something else"), 0);
}

TEST(SchedulerTest, ARequestGoesWhereItCanGoOnFromMost) {
  EngineInfo info = SmallEngine(2);
  info.rollback = Rollback::kReplay;
  House house(info);
  auto longer = house.Submit(Request("shared beginning, and then something of its own", 4));
  auto shorter = house.Submit(Request("shared beginning", 4));
  house.RunAll();
  Collect(*longer);
  const int slot = Collect(*shorter).completion->slot;
  auto next = house.Submit(Request("shared beginning, but another end", 4));
  house.RunAll();
  const Chunk chunk = Collect(*next);
  EXPECT_EQ(chunk.completion->slot, slot) << "the longer one shares more, but cannot go back to it";
  EXPECT_EQ(chunk.completion->timings.cached_tokens, 16);
}

TEST(SchedulerTest, TheQueueIsFirstInFirstOutAndBounded) {
  SchedulerOptions options;
  options.max_queue = 2;
  House house(SmallEngine(1), FakeEngine::Hashing(256), options);
  auto running = house.Submit(Request("a", 3));
  house.scheduler.Step();
  auto second = house.Submit(Request("b", 3));
  auto third = house.Submit(Request("c", 3));
  const auto refused = house.scheduler.Submit(Request("d", 3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(house.scheduler.Stats().refused, 1U);
  while (!Collect(*second).completion) ASSERT_TRUE(house.scheduler.Step());
  EXPECT_FALSE(Collect(*third).completion);
  house.RunAll();
  EXPECT_TRUE(Collect(*third).completion);
}

TEST(SchedulerTest, CancellingFreesTheSlotBeforeTheNextStep) {
  House house(SmallEngine(1));
  auto lost = house.Submit(Request("a", 100));
  auto next = house.Submit(Request("b", 2));
  for (int i = 0; i < 3; ++i) house.scheduler.Step();
  lost->Cancel();
  house.scheduler.Step();
  EXPECT_EQ(house.engine.batches().back().rows()[0].token, 'b');
  EXPECT_EQ(Collect(*lost).completion->reason, FinishReason::kCancelled);

  auto waiting = house.Submit(Request("c", 2));
  waiting->Cancel();
  house.RunAll();
  EXPECT_EQ(Collect(*waiting).completion->reason, FinishReason::kCancelled);
  EXPECT_TRUE(Collect(*next).completion);
}

TEST(SchedulerTest, LimitsOnTimeReturnWhatThereIs) {
  House house(SmallEngine(1));
  GenerationRequest request = Request("a");
  request.time_limit = std::chrono::milliseconds(5);
  auto generation = house.Submit(request);
  house.RunAll();
  Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.completion->reason, FinishReason::kTimeLimit);
  EXPECT_EQ(chunk.completion->timings.generated_tokens, 5);

  GenerationRequest late = Request("b");
  late.deadline = std::chrono::milliseconds(3);
  auto running = house.Submit(Request("a", 10));
  auto waiting = house.Submit(late);
  house.RunAll();
  EXPECT_EQ(Collect(*waiting).completion->reason, FinishReason::kTimeLimit);
  EXPECT_EQ(Collect(*running).completion->reason, FinishReason::kLength);
}

TEST(SchedulerTest, BadRequestsAreRefusedNamingTheField) {
  House house(SmallEngine(1, 10));
  const auto field = [&](GenerationRequest request) {
    auto generation = house.scheduler.Submit(std::move(request));
    EXPECT_FALSE(generation.ok());
    EXPECT_EQ(generation.status().code(), StatusCode::kInvalidArgument);
    return generation.status().field();
  };
  EXPECT_EQ(field(Request("")), "prompt");
  const Status too_long = house.scheduler.Submit(Request("0123456789")).status();
  EXPECT_EQ(too_long.code(), StatusCode::kContextExceeded);
  EXPECT_EQ(too_long.field(), "prompt");
  EXPECT_EQ(too_long.tokens(), 10);
  EXPECT_EQ(too_long.max_tokens(), 10);
  GenerationRequest request = Request("a");
  request.prompt = {1000};
  EXPECT_EQ(field(request), "prompt");
  request = Request("a");
  request.slot = 1;
  EXPECT_EQ(field(request), "id_slot");
  request = Request("a");
  request.sampling.grammar.text = "!";
  EXPECT_EQ(field(request), "grammar");
}

TEST(SchedulerTest, IgnoreEosGoesOnPastTheEnd) {
  House house(SmallEngine(1, 20), FakeEngine::Reciting("hi", 1));
  GenerationRequest request = Request("a", 6);
  request.ignore_eos = true;
  auto generation = house.Submit(request);
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  EXPECT_EQ(chunk.completion->reason, FinishReason::kLength);
  EXPECT_EQ(chunk.completion->timings.generated_tokens, 6);
}

TEST(SchedulerTest, LogprobsBelongToTheirTokens) {
  House house(SmallEngine(1), FakeEngine::Reciting("hi", 1));
  GenerationRequest request = Request("a");
  request.top_logprobs = 2;
  auto generation = house.Submit(request);
  house.RunAll();
  const Chunk chunk = Collect(*generation);
  ASSERT_EQ(chunk.tokens.size(), 2U);
  EXPECT_EQ(chunk.tokens[0].piece, "h");
  ASSERT_EQ(chunk.tokens[0].top.size(), 2U);
  EXPECT_EQ(chunk.tokens[0].top[0].token, 'h');
  EXPECT_FLOAT_EQ(chunk.tokens[0].logprob, chunk.tokens[0].top[0].logprob);
  EXPECT_NEAR(chunk.tokens[0].logprob, -std::log(1 + 257 * std::exp(-10.0)), 1e-5);
}

TEST(SchedulerTest, AFailingSequenceDoesNotTakeOthersAlong) {
  const auto script = FakeEngine::Hashing(256);
  House house(SmallEngine(), script);
  house.engine.FailWhile([](const Batch& batch) {
    for (const BatchRow& row : batch.rows()) {
      if (row.token == '!') return true;
    }
    return false;
  });
  auto good = house.Submit(Request("good", 8));
  auto bad = house.Submit(Request("b!d", 8));
  house.RunAll();
  Chunk chunk = Collect(*good);
  EXPECT_EQ(chunk.completion->reason, FinishReason::kLength);
  EXPECT_EQ(chunk.completion->timings.generated_tokens, 8);
  chunk = Collect(*bad);
  EXPECT_EQ(chunk.completion->reason, FinishReason::kError);
  EXPECT_EQ(chunk.completion->error.code(), StatusCode::kInternal);
  EXPECT_EQ(house.scheduler.Stats().running, 0);
}

TEST(SchedulerTest, SlotsCanBeSavedErasedAndRestored) {
  House house(SmallEngine(1));
  auto generation = house.Submit(Request("remember me", 4));
  house.RunAll();
  Collect(*generation);
  auto saved = house.scheduler.SaveSlot(0);
  ASSERT_TRUE(saved.ok());
  auto erased = house.scheduler.EraseSlot(0);
  ASSERT_TRUE(erased.ok());
  EXPECT_EQ(*erased, 14) << "11 of the prompt and 3 of the 4 generated; the last one was never decoded";
  ASSERT_TRUE(house.scheduler.RestoreSlot(0, *saved, "").ok());
  generation = house.Submit(Request("remember me too", 1));
  house.RunAll();
  EXPECT_EQ(Collect(*generation).completion->timings.cached_tokens, 11);
  EXPECT_EQ(house.scheduler.SaveSlot(7).status().code(), StatusCode::kNotFound);

  ASSERT_TRUE(house.scheduler.RestoreSlot(0, *saved, "anna").ok());
  for (const auto& [owner, cached] : {std::pair("bert", 0), {"anna", 0}}) {
    generation = house.Submit(RequestOf(owner, "remember me too"));
    house.RunAll();
    EXPECT_EQ(Collect(*generation).completion->timings.cached_tokens, cached) << "bert's prompt has replaced anna's";
  }
  ASSERT_TRUE(house.scheduler.RestoreSlot(0, *saved, "anna").ok());
  generation = house.Submit(RequestOf("anna", "remember me too"));
  house.RunAll();
  EXPECT_EQ(Collect(*generation).completion->timings.cached_tokens, 11);
  saved->tokens.push_back(100'000);
  EXPECT_FALSE(house.scheduler.RestoreSlot(0, *saved, "anna").ok()) << "not of this vocabulary";
}

// Beside other work a step that fails for want of memory costs the requests that run, and nothing else.
TEST(SchedulerTest, WantOfMemoryEndsRequestsAndNotTheServer) {
  std::atomic<bool> enough = true;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  FakeEngine engine(SmallEngine(), [&](std::span<const Token> tokens) -> Token {
    if (!enough) throw std::bad_alloc();
    return tokens.back() == 'z' ? 'a' : tokens.back() + 1;
  });
  Scheduler scheduler(engine, tokenizer, filters, {});
  scheduler.Start();
  const auto completion = [&](const GenerationRequest& request) {
    auto generation = scheduler.Submit(request);
    EXPECT_TRUE(generation.ok());
    for (;;) {
      if (const auto chunk = (*generation)->Wait(std::chrono::milliseconds(100)); chunk && chunk->completion)
        return *chunk->completion;
    }
  };
  enough = false;
  const Completion failed = completion(Request("abc", 5));
  EXPECT_EQ(failed.reason, FinishReason::kError);
  EXPECT_EQ(failed.error.code(), StatusCode::kUnavailable);
  enough = true;
  EXPECT_EQ(completion(Request("abc", 5)).reason, FinishReason::kLength);
  EXPECT_EQ(scheduler.Stats().running, 0);
}

// What a drafter learned is kept before anybody who waits for the end can cut the program short.
TEST(SchedulerTest, DraftersAreGoneWhenTheSchedulerHasStopped) {
  class KeepingDrafter : public Drafter {
   public:
    explicit KeepingDrafter(std::atomic<bool>* kept) : Drafter({.name = "keeping"}), kept_(kept) {}
    ~KeepingDrafter() override { *kept_ = true; }
    void Begin(SeqId, std::span<const Token>, const DraftContext&) override {}
    void Propose(std::span<Proposal*>) override {}
    void Commit(SeqId, const CommittedStep&) override {}
    void End(SeqId, std::span<const Token>, bool) override {}

   private:
    std::atomic<bool>* kept_;
  };
  std::atomic<bool> kept = false;
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = 1;
  info.sequence_length = 64;
  info.max_batch = info.micro_batch = info.max_outputs = 16;
  FakeEngine engine(info, FakeEngine::Hashing(200));
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<KeepingDrafter>(&kept));
  Scheduler scheduler(engine, tokenizer, filters, {},
                      std::make_unique<Speculator>(std::move(drafters), CostCurve(), SpeculatorOptions(), engine));
  scheduler.Start();
  EXPECT_FALSE(kept);
  scheduler.Drain(std::chrono::seconds(1));
  scheduler.WaitUntilStopped();
  EXPECT_TRUE(kept);
  EXPECT_EQ(scheduler.Stats().drafters.at(0).name, "keeping") << "names outlive the drafters";
}

TEST(SchedulerTest, DrainingFinishesWhatRunsAndCutsWhatTakesTooLong) {
  House house(SmallEngine(1));
  auto quick = house.Submit(Request("a", 3));
  auto endless = house.Submit(Request("b"));
  house.scheduler.Drain(std::chrono::milliseconds(20));
  EXPECT_EQ(house.scheduler.Submit(Request("c")).status().code(), StatusCode::kUnavailable);
  house.RunAll();
  EXPECT_EQ(Collect(*quick).completion->reason, FinishReason::kLength);
  EXPECT_EQ(Collect(*endless).completion->reason, FinishReason::kTimeLimit);
}

TEST(SchedulerTest, RunsInAThreadOfItsOwn) {
  FakeEngine engine(SmallEngine(), FakeEngine::Reciting("Hello!", 3));
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  Scheduler scheduler(engine, tokenizer, filters, {});
  scheduler.Start();
  for (int round = 0; round < 20; ++round) {
    auto generation = scheduler.Submit(Request("abc"));
    ASSERT_TRUE(generation.ok());
    std::string text;
    for (bool done = false; !done;) {
      auto chunk = (*generation)->Wait(std::chrono::seconds(10));
      ASSERT_TRUE(chunk);
      text += chunk->text;
      done = chunk->completion.has_value();
    }
    EXPECT_EQ(text, "Hello!");
    EXPECT_TRUE(scheduler.EraseSlot(1).ok());
  }
}

// Whatever arrives, in whatever order, is answered as if it had been alone.
RC_GTEST_PROP(SchedulerTest, EveryRequestGetsItsPlainText, ()) {
  const auto script = FakeEngine::Hashing(256);
  EngineInfo info = SmallEngine(*rc::gen::inRange(1, 4), 80);
  info.rollback =
      *rc::gen::element(Rollback::kDropCells, Rollback::kDeviceSnapshots, Rollback::kReplay, Rollback::kNone);
  if (info.rollback == Rollback::kDeviceSnapshots) info.device_snapshots = *rc::gen::inRange(1, 5);
  SchedulerOptions options;
  options.prompt_slice = *rc::gen::inRange(1, 40);
  House house(info, script, options);
  struct Expected {
    std::shared_ptr<Generation> generation;
    std::string prompt;
    int max_tokens;
    bool cancelled = false;
  };
  std::vector<Expected> requests;
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const std::string prompt =
        std::string(static_cast<size_t>(*rc::gen::inRange(1, 50)), 'p') + std::to_string(*rc::gen::inRange(0, 3));
    const int max_tokens = *rc::gen::inRange(1, 25);
    GenerationRequest request = Request(prompt, max_tokens);
    request.reuse_prefix = *rc::gen::inRange(0, 4) != 0;
    requests.push_back({house.Submit(request), prompt, max_tokens});
    for (int steps = *rc::gen::inRange(0, 10); steps > 0; --steps) house.scheduler.Step();
    if (*rc::gen::inRange(0, 6) == 0) {
      requests.back().generation->Cancel();
      requests.back().cancelled = true;
    }
  }
  house.RunAll();
  for (Expected& request : requests) {
    const Chunk chunk = Collect(*request.generation);
    RC_ASSERT(chunk.completion.has_value());
    if (request.cancelled) continue;
    const int room = 80 - static_cast<int>(request.prompt.size());
    const int expected_tokens = std::min(request.max_tokens, room);
    RC_ASSERT(chunk.completion->timings.generated_tokens == expected_tokens);
    std::string pieces;
    for (const GeneratedToken& token : chunk.tokens) pieces += token.piece;
    RC_ASSERT(pieces == PlainRun(script, request.prompt, expected_tokens));
  }
  RC_ASSERT(house.scheduler.Stats().running == 0);
}

}  // namespace
}  // namespace outrider
