// The worked example at work: same answers as without it, with drafts that are accepted, on a fake engine and on a real
// model.
#include "nearest_state_drafter.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"
#include "sampling/fake_filters.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

struct Answer {
  std::vector<Token> tokens;
  int accepted = 0, drafted = 0, cached = 0;
};

std::unique_ptr<Speculator> SpeculateWith(Engine& engine, const Tokenizer& tokenizer) {
  DrafterEnvironment environment{engine.info().n_sequences, tokenizer};
  environment.target = &engine;
  auto drafter = MakeDrafter({"nearest-state", {}}, environment, {NearestStateKind()});
  EXPECT_TRUE(drafter.ok()) << drafter.status().message();
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::move(*drafter));
  SpeculatorOptions options;
  options.always = true;
  options.n_max = 6;
  return std::make_unique<Speculator>(std::move(drafters), CostCurve(), options, engine);
}

std::vector<Answer> AnswersOf(Scheduler& scheduler, const std::vector<std::vector<Token>>& prompts, int max_tokens) {
  std::vector<std::shared_ptr<Generation>> generations;
  for (const std::vector<Token>& prompt : prompts) {
    GenerationRequest request;
    request.prompt = prompt;
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    generations.push_back(*scheduler.Submit(request));
  }
  while (scheduler.Step()) {
  }
  std::vector<Answer> answers;
  for (const auto& generation : generations) {
    Answer& answer = answers.emplace_back();
    bool over = false;
    while (auto chunk = over ? std::nullopt : generation->Wait(std::chrono::milliseconds(0))) {
      for (const GeneratedToken& token : chunk->tokens) answer.tokens.push_back(token.token);
      over = chunk->completion.has_value();
      answer.accepted = chunk->timings.accepted_tokens;
      answer.drafted = chunk->timings.drafted_tokens;
      answer.cached = chunk->timings.cached_tokens;
    }
  }
  return answers;
}

void ExpectSameTokens(const std::vector<Answer>& answers, const std::vector<Answer>& expected) {
  ASSERT_EQ(answers.size(), expected.size());
  for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].tokens, expected[i].tokens) << "request " << i;
}

EngineInfo SmallEngine() {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = 3;
  info.sequence_length = 200;
  info.max_batch = 64;
  info.micro_batch = 16;
  info.max_outputs = 48;
  return info;
}

TEST(NearestStateDrafterTest, RepetitionsAreDraftedAndTheAnswersStayTheSame) {
  // A text of period 11, whatever the prompt.
  const FakeEngine::Script script = [](std::span<const Token> tokens) {
    return static_cast<Token>('a' + tokens.size() * 7 % 11);
  };
  FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  const std::vector<std::vector<Token>> prompts = {{'x', 'y', 'z'}, std::vector<Token>(40, 'q'), {'x'}};
  for (const Rollback rollback : {Rollback::kDropCells, Rollback::kReplay}) {
    EngineInfo info = SmallEngine();
    info.rollback = rollback;
    FakeEngine plain_engine(SmallEngine(), script), engine(info, script);
    Scheduler plain(plain_engine, tokenizer, filters, {});
    Scheduler scheduler(engine, tokenizer, filters, {}, SpeculateWith(engine, tokenizer));
    const std::vector<Answer> expected = AnswersOf(plain, prompts, 60), answers = AnswersOf(scheduler, prompts, 60);
    ExpectSameTokens(answers, expected);
    for (const Answer& answer : answers) EXPECT_GT(answer.accepted, 20);
    // What is in memory has no rows any more: states of a reused prefix are not guessed.
    const std::vector<Answer> again = AnswersOf(scheduler, prompts, 60);
    ExpectSameTokens(again, expected);
    EXPECT_GT(again[1].cached, 0);
  }
}

TEST(NearestStateDrafterTest, StopsWhereItIsToldTo) {
  FakeTokenizer tokenizer;
  FakeEngine engine(SmallEngine(), FakeEngine::Hashing(258));
  DrafterEnvironment environment{1, tokenizer};
  environment.target = &engine;
  auto drafter = MakeDrafter({"nearest-state", {}}, environment, {NearestStateKind()});
  ASSERT_TRUE(drafter.ok()) << drafter.status().message();
  // The newest token, 'p', followed another one before: what came next is drafted, with a confidence below 1.
  const std::vector<Token> history = {'x', 'p', 'q', 'r', 's', 't', 'y', 'p'};
  Batch batch;
  for (Pos pos = 0; pos + 1 < static_cast<Pos>(history.size()); ++pos)
    batch.Add({history[static_cast<size_t>(pos)], pos, 0, false, true});
  ASSERT_TRUE(engine.Decode(batch).ok());
  (*drafter)->Begin(0, history, {});
  (*drafter)->Commit(0, {history, 1, {0, batch.size(), &engine, 0}});
  const auto draft = [&](int max_tokens, float p_min, double min_survival, std::vector<DraftToken> begun = {}) {
    Proposal proposal;
    proposal.draft.tokens = std::move(begun);
    proposal.seq = 0;
    proposal.history = history;
    proposal.max_tokens = max_tokens;
    proposal.p_min = p_min;
    proposal.min_survival = min_survival;
    Proposal* asked[] = {&proposal};
    (*drafter)->Propose(asked);
    return proposal.draft.tokens;
  };
  const std::vector<DraftToken> all = draft(16, 0, 0);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].token, 'q');
  const float confidence = all[0].confidence;
  ASSERT_LT(confidence, 1);
  EXPECT_EQ(draft(4, 0, 0).size(), 4u);
  EXPECT_EQ(draft(16, confidence + 0.01f, 0).size(), 0u);
  EXPECT_EQ(draft(16, 0, confidence * confidence * 0.99).size(), 3u) << "the third makes it too unlikely";

  const std::vector<DraftToken> continued = draft(4, 0, 0, {{'q', 0.9f}, {'r', 0.9f}});
  ASSERT_EQ(continued.size(), 4u) << "another drafter has begun with 'q', 'r'";
  EXPECT_EQ(continued[0].confidence, 0.9f);
  EXPECT_EQ(continued[2].token, 's');
  EXPECT_EQ(continued[3].token, 't');
  EXPECT_EQ(draft(16, 0, 0, {{'z', 0.9f}}).size(), 1u) << "'z' never followed: the draft stays as it was";
}

TEST(NearestStateDrafterTest, ReadsARealModel) {
  ModelOptions options;
  options.path = std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf";
  auto model = LlamaModel::Load(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  ContextOptions context;
  context.n_sequences = 3;
  context.context_tokens = 3 * 512;
  context.threads = 2;
  auto plain_engine = LlamaEngine::Create(*model, context), engine = LlamaEngine::Create(*model, context);
  ASSERT_TRUE(plain_engine.ok() && engine.ok());
  LlamaFilterFactory filters(*model, (*engine)->info().sequence_length);
  const Tokenizer& tokenizer = (*model)->tokenizer();
  std::vector<std::vector<Token>> prompts;
  for (const char* text :
       {"one two three four one two three four one two", "The sea, the sea, the", "12 12 12 12 12 12"})
    prompts.push_back(tokenizer.Tokenize(text, true, SpecialTokens::kAsText));
  Scheduler plain(**plain_engine, tokenizer, filters, {});
  Scheduler scheduler(**engine, tokenizer, filters, {}, SpeculateWith(**engine, tokenizer));
  const std::vector<Answer> expected = AnswersOf(plain, prompts, 48), answers = AnswersOf(scheduler, prompts, 48);
  ExpectSameTokens(answers, expected);
  int accepted = 0;
  for (const Answer& answer : answers) accepted += answer.accepted;
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace outrider
