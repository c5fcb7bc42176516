// The scheduler with drafts: same answers as without, no rows wasted past a limit, memory exact after every step
// (FakeEngine aborts on any breach).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "engine/replicated_engine.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 258;

EngineInfo SmallEngine() {
  EngineInfo info;
  info.n_vocab = kVocabulary;
  info.n_sequences = 3;
  info.sequence_length = 120;
  info.max_batch = 64;
  info.micro_batch = 16;
  info.max_outputs = 48;
  return info;
}

// A drafter that knows the engine's next tokens. Each drafted token is right with probability `right`.
class LeakyDrafter : public Drafter {
 public:
  LeakyDrafter(FakeEngine::Script script, double right, unsigned seed)
      : LeakyDrafter({.name = "leaky"}, std::move(script), right, seed) {}

  void Begin(SeqId seq, std::span<const Token>, const DraftContext&) override { EXPECT_TRUE(live_.insert(seq).second); }
  void Commit(SeqId seq, const CommittedStep& step) override {
    EXPECT_TRUE(live_.contains(seq));
    EXPECT_GE(step.history.size(), static_cast<size_t>(step.added));
  }
  void End(SeqId seq, std::span<const Token>, bool) override { EXPECT_EQ(live_.erase(seq), 1u); }
  void Propose(std::span<Proposal*> proposals) override {
    for (Proposal* proposal : proposals) {
      std::vector<Token> tokens(proposal->history.begin(), proposal->history.end());
      while (proposal->draft.size() < proposal->max_tokens) {
        const bool right = std::uniform_real_distribution<>()(random_) < right_;
        const Token next = right ? script_(tokens) : static_cast<Token>(random_() % 256);
        proposal->draft.tokens.push_back({next, 0.9f});
        tokens.push_back(next);
      }
    }
  }

 protected:
  LeakyDrafter(DrafterTraits traits, FakeEngine::Script script, double right, unsigned seed)
      : Drafter(std::move(traits)), script_(std::move(script)), right_(right), random_(seed) {}

 private:
  FakeEngine::Script script_;
  double right_;
  std::mt19937 random_;
  std::set<SeqId> live_;
};

std::unique_ptr<Speculator> Speculating(const Engine& engine, FakeEngine::Script script, double right, int n_max,
                                        const Clock& clock, unsigned seed = 1) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LeakyDrafter>(std::move(script), right, seed));
  SpeculatorOptions options;
  options.always = true;
  options.n_max = n_max;
  return std::make_unique<Speculator>(std::move(drafters), CostCurve(), options, engine, clock);
}

struct Answer {
  std::string text;
  FinishReason reason;
  int tokens;

  bool operator==(const Answer&) const = default;
};

// Answers of all requests, submitted one after the other every few steps.
std::vector<Answer> RunAll(const std::vector<GenerationRequest>& requests, std::unique_ptr<Speculator> speculator,
                           const Clock& clock, Engine& engine, SchedulerStats* stats = nullptr) {
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  Scheduler scheduler(engine, tokenizer, filters, SchedulerOptions(), std::move(speculator), clock);
  std::vector<std::shared_ptr<Generation>> generations;
  for (const GenerationRequest& request : requests) {
    generations.push_back(*scheduler.Submit(request));
    scheduler.Step();
    scheduler.Step();
  }
  while (scheduler.Step()) {
  }
  if (stats != nullptr) *stats = scheduler.Stats();
  std::vector<Answer> answers;
  for (auto& generation : generations) {
    Chunk all;
    while (auto chunk = generation->Wait(std::chrono::milliseconds(0))) {
      all.text += chunk->text;
      if (chunk->completion) all.completion = chunk->completion;
      if (all.completion) break;
    }
    answers.push_back({all.text, all.completion->reason, all.completion->timings.generated_tokens});
  }
  return answers;
}

GenerationRequest Request(const std::string& prompt, int max_tokens) {
  GenerationRequest request;
  request.prompt = FakeTokenizer().Tokenize(prompt, false, SpecialTokens::kAsText);
  request.sampling.temperature = 0;
  request.max_tokens = max_tokens;
  return request;
}

// At a temperature of 2 the likeliest token of the fake engine has e^5 / (e^5 + 256) = 37 %.
GenerationRequest RandomRequest(int max_tokens, int seed) {
  GenerationRequest request = Request("abc", max_tokens);
  request.ignore_eos = true;
  request.sampling = {};
  request.sampling.seed = static_cast<uint64_t>(seed);
  request.sampling.temperature = 2;
  request.sampling.top_k = 0;
  request.sampling.top_p = 1;
  request.sampling.min_p = 0;
  return request;
}

RC_GTEST_PROP(SpeculationTest, AnswersAreThoseOfPlainDecoding, ()) {
  // A small alphabet, so that stop strings and the end of the text occur.
  const unsigned salt = *rc::gen::inRange(0u, 1000u);
  const FakeEngine::Script script = [salt](std::span<const Token> tokens) -> Token {
    uint64_t hash = salt;
    for (Token token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001b3;
    const auto letter = static_cast<Token>((hash >> 20) % 40);
    return letter == 39 ? FakeTokenizer::kEos : static_cast<Token>('a' + letter % 4);
  };
  std::vector<GenerationRequest> requests;
  const int count = *rc::gen::inRange(1, 7);
  for (int i = 0; i < count; ++i) {
    GenerationRequest request = Request(std::string(*rc::gen::inRange<size_t>(1, 40), static_cast<char>('p' + i % 3)),
                                        *rc::gen::elementOf(std::vector<int>{-1, 0, 1, 2, 5, 30}));
    request.ignore_eos = *rc::gen::arbitrary<bool>();
    if (*rc::gen::arbitrary<bool>()) request.stop = {"ab", "dca"};
    requests.push_back(request);
  }
  ManualClock clock;
  EngineInfo info = SmallEngine();
  info.rollback =
      *rc::gen::element(Rollback::kDropCells, Rollback::kDeviceSnapshots, Rollback::kReplay, Rollback::kNone);
  if (info.rollback == Rollback::kDeviceSnapshots) info.device_snapshots = *rc::gen::inRange(1, 9);
  FakeEngine plain_engine(SmallEngine(), script), engine(info, script);
  const auto expected = RunAll(requests, nullptr, clock, plain_engine);
  const double right = *rc::gen::elementOf(std::vector<double>{0, 0.3, 0.8, 1});
  const int n_max = *rc::gen::inRange(1, 20);
  RC_ASSERT(RunAll(requests, Speculating(engine, script, right, n_max, clock, salt), clock, engine) == expected);
}

// Drafts on while its draft is verified, and is wrong at every `wrong_at`-th token.
class AheadDrafter : public LeakyDrafter {
 public:
  AheadDrafter(FakeEngine::Script script, size_t wrong_at)
      : LeakyDrafter({.name = "leaky", .drafts_ahead = true}, script, 1, 1),
        script_(std::move(script)),
        wrong_at_(wrong_at) {}

  void Propose(std::span<Proposal*> proposals) override {
    for (Proposal* proposal : proposals) {
      std::vector<Token> tokens(proposal->history.begin(), proposal->history.end());
      for (const DraftToken& given : proposal->draft.tokens) tokens.push_back(given.token);
      while (proposal->draft.size() < proposal->max_tokens) {
        const Token next = tokens.size() % wrong_at_ == 0 ? 'x' : script_(tokens);
        proposal->draft.tokens.push_back({next, 0.9f});
        tokens.push_back(next);
      }
    }
  }

 private:
  FakeEngine::Script script_;
  size_t wrong_at_;
};

RC_GTEST_PROP(SpeculationTest, AnswersAreThoseOfPlainDecodingWithReplicas, ()) {
  const auto script = FakeEngine::Hashing(200);
  std::vector<GenerationRequest> requests;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) {
    requests.push_back(Request(std::string(*rc::gen::inRange<size_t>(1, 40), static_cast<char>('p' + i % 3)),
                               *rc::gen::elementOf(std::vector<int>{-1, 0, 1, 2, 5, 30})));
  }
  const auto wrong_at = *rc::gen::elementOf(std::vector<size_t>{1, 3, 10, 1000});
  ManualClock clock;
  FakeEngine plain_engine(SmallEngine(), script), one(SmallEngine(), script), two(SmallEngine(), script);
  const auto expected = RunAll(requests, nullptr, clock, plain_engine);

  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<AheadDrafter>(script, wrong_at));
  SpeculatorOptions options;
  options.always = true;
  options.n_max = *rc::gen::inRange(1, 6);
  ReplicatedEngine engine({&one, &two});
  auto speculator = std::make_unique<Speculator>(std::move(drafters), CostCurve(), options, engine, clock, &engine);
  SchedulerStats stats;
  RC_ASSERT(RunAll(requests, std::move(speculator), clock, engine, &stats) == expected);
  RC_CLASSIFY(stats.lookahead_steps > 0, "begun ahead");
  const bool worth_it = wrong_at == 1000 && options.n_max > 3;
  if (worth_it && count == 1 && requests[0].max_tokens == 30) RC_ASSERT(stats.lookahead_steps > 1u);
}

// The batches of an answer of `tokens` to a short prompt, with drafts of `n_max` tokens of which each is `right` or
// not.
std::vector<Batch> BatchesOf(const EngineInfo& info, int tokens, double right, int n_max) {
  ManualClock clock;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine engine(info, script);
  RunAll({Request("abc", tokens)}, Speculating(engine, script, right, n_max, clock), clock, engine);
  return engine.batches();
}

TEST(SpeculationTest, RightDraftsSaveSteps) {
  EXPECT_EQ(BatchesOf(SmallEngine(), 41, 1, 4).size(), 9u) << "the prompt gives a token, then five each";
}

TEST(SpeculationTest, DraftsStayWithinMaxTokensAndTheContext) {
  for (const int max_tokens : {4, -1}) {
    const Pos max_length = max_tokens > 0 ? 3 + max_tokens : SmallEngine().sequence_length;
    for (const Batch& batch : BatchesOf(SmallEngine(), max_tokens, 1, 30)) {
      EXPECT_LT(batch.rows().back().pos, max_length - 1) << "the last token is never decoded";
      EXPECT_LE(batch.size(), 31);
    }
  }
}

TEST(SpeculationTest, FailingStepsAreTriedAgainWithoutDrafts) {
  ManualClock clock;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine plain_engine(SmallEngine(), script), engine(SmallEngine(), script);
  const std::vector<GenerationRequest> requests = {Request("abc", 20), Request("xyz", 20)};
  const auto expected = RunAll(requests, nullptr, clock, plain_engine);
  int failures = 0;
  engine.FailWhile([&](const Batch& batch) { return batch.size() > 6 && failures++ < 2; });
  EXPECT_EQ(RunAll(requests, Speculating(engine, script, 0.7, 6, clock), clock, engine), expected);
  EXPECT_GT(failures, 0);
}

// A sequence that reads its own tokens again, one row at a time, must not be drafted for before it is done.
TEST(SpeculationTest, NothingIsDraftedWhileTokensAreReadAgain) {
  ManualClock clock;
  EngineInfo info = SmallEngine();
  info.micro_batch = 1;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine plain_engine(info, script), engine(info, script);
  const std::vector<GenerationRequest> requests = {Request("abc", 30)};
  const auto expected = RunAll(requests, nullptr, clock, plain_engine);
  int failures = 0;
  engine.FailWhile([&](const Batch& batch) { return batch.rows().back().pos > 12 && failures++ < 1; });
  EXPECT_EQ(RunAll(requests, Speculating(engine, script, 0.5, 3, clock), clock, engine), expected);
  EXPECT_GT(failures, 0);
}

TEST(SpeculationTest, AnEngineThatCannotTakeTokensBackIsNotAskedTo) {
  EngineInfo info = SmallEngine();
  info.rollback = Rollback::kNone;
  const std::vector<Batch> batches = BatchesOf(info, 20, 0.5, 6);
  for (size_t i = 1; i < batches.size(); ++i) EXPECT_EQ(batches[i].size(), 1);
}

// Tokens that a running state loses with a rejected draft are decoded again in the next step, not in a step of their
// own.
TEST(SpeculationTest, TokensAreReplayedAlongTheWay) {
  ManualClock clock;
  EngineInfo info = SmallEngine();
  info.rollback = Rollback::kReplay;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine plain_engine(SmallEngine(), script), engine(info, script);
  const std::vector<GenerationRequest> requests = {Request("abc", 12)};
  const auto expected = RunAll(requests, nullptr, clock, plain_engine);
  EXPECT_EQ(RunAll(requests, Speculating(engine, script, 0, 3, clock), clock, engine), expected);
  EXPECT_EQ(engine.batches().size(), plain_engine.batches().size());
  EXPECT_EQ(engine.batches()[1].size(), 1 + 3);
  EXPECT_EQ(engine.batches()[2].size(), 2 + 3) << "the token that was right, the next one, and a draft";
}

TEST(SpeculationTest, ReplaysDoNotGrowForEver) {
  EngineInfo info = SmallEngine();
  info.rollback = Rollback::kReplay;
  for (const Batch& batch : BatchesOf(info, 110, 0, 3)) EXPECT_LE(batch.size(), info.max_batch / info.n_sequences + 3);
}

TEST(SpeculationTest, DeviceSnapshotsTakeShortDraftsBackWithoutAReplay) {
  EngineInfo info = SmallEngine();
  info.rollback = Rollback::kDeviceSnapshots;
  info.device_snapshots = 3;
  const std::vector<Batch> batches = BatchesOf(info, 12, 0, 3);
  for (size_t i = 1; i < batches.size(); ++i) EXPECT_LE(batches[i].size(), 1 + 3);
}

// With a flat distribution and a drafter that always proposes the most likely token, accepting it too often shows.
TEST(SpeculationTest, RejectionKeepsTheDistribution) {
  ManualClock clock;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine engine(SmallEngine(), script);
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  SchedulerOptions options;
  options.verify = VerifyMode::kReject;
  Scheduler scheduler(engine, tokenizer, filters, options, Speculating(engine, script, 1, 3, clock), clock);
  constexpr int kRequests = 600, kTokens = 20;
  int likeliest = 0, accepted = 0, as_plain = 0;
  FakeEngine plain_engine(SmallEngine(), script);
  for (int i = 0; i < kRequests; ++i) {
    const GenerationRequest request = RandomRequest(kTokens, i);
    auto generation = *scheduler.Submit(request);
    while (scheduler.Step()) {
    }
    std::vector<Token> history = request.prompt;
    std::string text;
    while (auto chunk = generation->Wait(std::chrono::milliseconds(0))) {
      for (const GeneratedToken& token : chunk->tokens) {
        likeliest += token.token == script(history) ? 1 : 0;
        history.push_back(token.token);
      }
      text += chunk->text;
      if (!chunk->completion) continue;
      accepted += chunk->completion->timings.accepted_tokens;
      break;
    }
    as_plain += text == RunAll({request}, nullptr, clock, plain_engine)[0].text ? 1 : 0;
  }
  const double p = std::exp(5.0) / (std::exp(5.0) + 256), n = kRequests * kTokens;
  EXPECT_NEAR(likeliest / n, p, 4 * std::sqrt(p * (1 - p) / n));
  EXPECT_GT(accepted, 0);
  // Match mode also keeps the distribution, but its answers are those of plain decoding. Rejection sampling decides
  // about drafted tokens by other coins.
  EXPECT_LT(as_plain, kRequests / 100);
}

// Draws its tokens from a distribution of its own, says which one, and is asked for distributions.
class DrawingDrafter : public Drafter {
 public:
  explicit DrawingDrafter(FakeEngine::Script script)
      : Drafter({.name = "drawing", .draws = true}), script_(std::move(script)) {}

  void Begin(SeqId, std::span<const Token>, const DraftContext& context) override {
    EXPECT_TRUE(context.distributions);
  }
  void Commit(SeqId, const CommittedStep&) override {}
  void End(SeqId, std::span<const Token>, bool) override {}
  void Propose(std::span<Proposal*> proposals) override {
    for (Proposal* proposal : proposals) {
      std::vector<Token> tokens(proposal->history.begin(), proposal->history.end());
      while (proposal->draft.size() < proposal->max_tokens) {
        // The target's likeliest token, which it should have in 37 of 100 cases, in 60; another one otherwise.
        const Token likeliest = script_(tokens);
        const Token other = (likeliest + 1) % 250;
        const Token drawn = std::uniform_real_distribution<>()(random_) < 0.6 ? likeliest : other;
        proposal->draft.tokens.push_back({drawn, 0.6f});
        proposal->draft.distributions.push_back({{likeliest, 0.6f}, {other, 0.4f}});
        tokens.push_back(drawn);
      }
    }
  }

 private:
  FakeEngine::Script script_;
  std::mt19937 random_{3};
};

// The whole way through the scheduler, with q < 1: neither of the two tokens that are always drafted may become more
// frequent than in the target's distribution.
TEST(SpeculationTest, RejectionKeepsTheDistributionOfDraftsThatAreDrawn) {
  ManualClock clock;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine engine(SmallEngine(), script);
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<DrawingDrafter>(script));
  SpeculatorOptions speculation;
  speculation.always = true;
  speculation.n_max = 3;
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  SchedulerOptions options;
  options.verify = VerifyMode::kReject;
  Scheduler scheduler(engine, tokenizer, filters, options,
                      std::make_unique<Speculator>(std::move(drafters), CostCurve(), speculation, engine, clock),
                      clock);
  constexpr int kRequests = 600, kTokens = 20;
  int likeliest = 0, other = 0, accepted = 0, drafted = 0;
  for (int i = 0; i < kRequests; ++i) {
    const GenerationRequest request = RandomRequest(kTokens, i);
    auto generation = *scheduler.Submit(request);
    while (scheduler.Step()) {
    }
    std::vector<Token> history = request.prompt;
    while (auto chunk = generation->Wait(std::chrono::milliseconds(0))) {
      for (const GeneratedToken& token : chunk->tokens) {
        const Token best = script(history);
        likeliest += token.token == best ? 1 : 0;
        other += token.token == (best + 1) % 250 ? 1 : 0;
        history.push_back(token.token);
      }
      if (!chunk->completion) continue;
      accepted += chunk->completion->timings.accepted_tokens;
      drafted += chunk->completion->timings.drafted_tokens;
      break;
    }
  }
  const double n = kRequests * kTokens, weight = std::exp(5.0) + 256;
  const double p = std::exp(5.0) / weight, q = 1 / weight;
  EXPECT_NEAR(likeliest / n, p, 4 * std::sqrt(p * (1 - p) / n));
  EXPECT_NEAR(other / n, q, 4 * std::sqrt(q * (1 - q) / n));
  const double first = std::min(p, 0.6) + std::min(q, 0.4);  // the chance of a draft's first token
  EXPECT_NEAR(static_cast<double>(accepted) / drafted, (first + first * first + first * first * first) / 3, 0.015);
}

TEST(SpeculationTest, TellsWhoDraftedEachToken) {
  ManualClock clock;
  const auto script = FakeEngine::Hashing(200);
  FakeEngine engine(SmallEngine(), script);
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  Scheduler scheduler(engine, tokenizer, filters, {}, Speculating(engine, script, 1, 3, clock), clock);
  auto generation = *scheduler.Submit(Request("abc", 9));
  while (scheduler.Step()) {
  }
  std::vector<std::string> drafters;
  std::optional<Completion> completion;
  while (auto chunk = generation->Wait(std::chrono::milliseconds(0))) {
    for (const GeneratedToken& token : chunk->tokens) drafters.emplace_back(token.drafter);
    completion = chunk->completion;
    if (completion) break;
  }
  const std::vector<std::string> expected = {"", "leaky", "leaky", "leaky", "", "leaky", "leaky", "leaky", ""};
  EXPECT_EQ(drafters, expected);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->timings.drafted_tokens, 6);
  EXPECT_EQ(completion->timings.accepted_tokens, 6);
  ASSERT_EQ(completion->drafters.size(), 1u);
  EXPECT_EQ(completion->drafters[0].accepted, 6u);
}

TEST(SpeculationTest, StepsListTheRejectedTokensUpToALimit) {
  const FakeEngine::Script script = [](std::span<const Token> tokens) {
    return static_cast<Token>('a' + tokens.size() % 26);
  };
  ManualClock clock;
  FakeEngine engine(SmallEngine(), script);
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  Scheduler scheduler(engine, tokenizer, filters, SchedulerOptions(), Speculating(engine, script, 0.8, 24, clock),
                      clock);
  GenerationRequest request = Request("abc", 80);
  request.speculation.provenance = true;
  const auto generation = *scheduler.Submit(request);
  while (scheduler.Step()) {
  }
  const auto chunk = generation->Wait(std::chrono::milliseconds(0));
  ASSERT_TRUE(chunk && chunk->completion);
  size_t rejected = 0;
  int place = 4;  // tokens before the step: the prompt, and the one that came with it
  for (const DraftedStep& step : chunk->completion->steps) {
    EXPECT_EQ(step.rejected.size(), static_cast<size_t>(std::min(step.drafted - step.accepted, kMaxRejectedListed)));
    place += step.accepted;
    const std::string right(1, static_cast<char>('a' + place % 26));
    EXPECT_TRUE(step.rejected.empty() || step.rejected[0] != right);
    ++place;
    rejected += step.rejected.size();
  }
  EXPECT_GT(rejected, 0u);
}

TEST(SpeculationTest, CostsCanBeAskedForAtAnyTime) {
  const FakeEngine::Script script = [](std::span<const Token>) { return Token{'a'}; };
  ManualClock clock;
  FakeEngine engine(SmallEngine(), script);
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  std::vector<std::unique_ptr<Drafter>> none;
  Scheduler scheduler(engine, tokenizer, filters, SchedulerOptions(),
                      std::make_unique<Speculator>(std::move(none), CostCurve({{1, 0.01}, {4, 0.02}}),
                                                   SpeculatorOptions(), engine, clock),
                      clock);
  StepCosts costs = scheduler.Costs();
  ASSERT_EQ(costs.curve.size(), static_cast<size_t>(kMaxShownRows));
  EXPECT_NEAR(costs.curve[3].seconds, 0.02, 1e-9);
  EXPECT_EQ(costs.curve[0].spread, 0);
  EXPECT_EQ(costs.last_rows, 0);
  const auto generation = *scheduler.Submit(Request("abc", 10));
  scheduler.Step();
  scheduler.Step();
  costs = scheduler.Costs();
  EXPECT_EQ(costs.last_rows, 1);
  EXPECT_EQ(costs.context, 5);
}

}  // namespace
}  // namespace outrider
