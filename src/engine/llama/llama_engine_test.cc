// The engine's contract on the real library and the in-repo models: batches of any shape give the same logits, to the
// bit.
#include "engine/llama/llama_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/llama/llama_filters.h"
#include "sampling/sampler.h"

namespace outrider {
namespace {

std::string ModelPath(const std::string& name) {
  return std::string(OUTRIDER_MODELS_DIR) + "/" + name;
}

std::shared_ptr<LlamaModel> LoadModel(const std::string& name, Kernels kernels = Kernels::kAuto) {
  ModelOptions options;
  options.path = ModelPath(name);
  options.kernels = kernels;
  auto model = LlamaModel::Load(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

std::unique_ptr<LlamaEngine> MakeEngine(const std::shared_ptr<LlamaModel>& model, ContextOptions options = {}) {
  if (options.context_tokens == 0) options.context_tokens = 1024 * options.n_sequences;
  options.threads = 2;
  auto engine = LlamaEngine::Create(model, options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? std::move(*engine) : nullptr;
}

const char kText[] =
    "The lighthouse keeper wrote down the weather every morning: wind, clouds, and the colour of the sea. Years later "
    "his "
    "granddaughter found the books, forty of them, and began to read. She learned that storms came with the moon more "
    "often than "
    "without it, that gulls knew before the glass did, and that he had missed only two days: the day her mother was "
    "born, and the "
    "day the lamp was made electric. She copied the pages by hand, because the paper was brittle, and because it was "
    "the only way "
    "to spend as much time with him as he had spent with the sky.";

// Decodes tokens[length of seq ..] in slices and returns the logits of the last one.
std::vector<float> Feed(LlamaEngine& engine, SeqId seq, const std::vector<Token>& tokens, int slice) {
  std::vector<float> logits;
  while (engine.Length(seq) < static_cast<Pos>(tokens.size())) {
    Batch batch;
    const Pos begin = engine.Length(seq);
    const Pos end = std::min(begin + slice, static_cast<Pos>(tokens.size()));
    int last = 0;
    for (Pos pos = begin; pos < end; ++pos)
      last = batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, pos == end - 1});
    const Status status = engine.Decode(batch);
    EXPECT_TRUE(status.ok()) << status.message();
    const auto row = engine.Logits(last);
    logits.assign(row.begin(), row.end());
  }
  return logits;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Both in-repo models, with ggml's kernels and with ours.
struct Setup {
  const char* model;
  Kernels kernels;
};
const Setup kSetups[] = {{"smollm2-draft-16m.gguf", Kernels::kGgml},
                         {"smollm2-draft-16m.gguf", Kernels::kOutrider},
                         {"smollm2-hybrid-19m.gguf", Kernels::kGgml},
                         {"smollm2-hybrid-19m.gguf", Kernels::kOutrider}};
std::string SetupName(const testing::TestParamInfo<Setup>& setup) {
  const bool hybrid = std::string(setup.param.model).find("hybrid") != std::string::npos;
  return std::string(hybrid ? "hybrid" : "transformer") + (setup.param.kernels == Kernels::kGgml ? "_ggml" : "_ours");
}
std::shared_ptr<LlamaModel> LoadModel(const Setup& setup) {
  return LoadModel(setup.model, setup.kernels);
}

class LlamaEngineTest : public testing::TestWithParam<Setup> {};

TEST_P(LlamaEngineTest, LogitsDoNotDependOnHowTheTokensWereCutIntoBatches) {
  auto model = LoadModel(GetParam());
  const auto tokens = model->tokenizer().Tokenize(std::string(kText) + kText + kText, true, SpecialTokens::kAsText);
  ASSERT_GT(tokens.size(), 300U);  // so that attention is cut into parts
  auto engine = MakeEngine(model);
  EXPECT_EQ(engine->info().exactness, "");
  const auto reference = Feed(*engine, 0, tokens, 1);
  for (int slice : {2, 3, 7, 16, 64, 128, 512}) {
    engine->TruncateTo(0, 0);
    EXPECT_TRUE(SameBits(Feed(*engine, 0, tokens, slice), reference)) << "slices of " << slice;
  }
}

// What verification needs: every row of a wide batch tells what it would have told alone.
TEST_P(LlamaEngineTest, EveryRowOfAWideBatchTellsWhatItTellsAlone) {
  auto model = LoadModel(GetParam());
  auto tokens = model->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  tokens.resize(48);
  auto engine = MakeEngine(model);
  std::vector<std::vector<float>> alone;
  for (size_t count = 1; count <= tokens.size(); ++count) {
    alone.push_back(Feed(*engine, 0, {tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count)}, 1));
  }
  for (int width : {2, 3, 4, 5, 6, 7, 8, 12, 16, 32}) {
    engine->TruncateTo(0, 0);
    for (Pos begin = 0; begin < static_cast<Pos>(tokens.size()); begin += width) {
      Batch batch;
      const Pos end = std::min(begin + width, static_cast<Pos>(tokens.size()));
      for (Pos pos = begin; pos < end; ++pos) batch.Add({tokens[static_cast<size_t>(pos)], pos, 0, true});
      ASSERT_TRUE(engine->Decode(batch).ok());
      for (Pos pos = begin; pos < end; ++pos) {
        const auto logits = engine->Logits(pos - begin);
        ASSERT_TRUE(SameBits({logits.begin(), logits.end()}, alone[static_cast<size_t>(pos)]))
            << "width " << width << ", row " << pos;
      }
    }
  }
}

TEST_P(LlamaEngineTest, LogitsDoNotDependOnNeighbours) {
  auto model = LoadModel(GetParam());
  const auto tokens = model->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  auto engine = MakeEngine(model);
  const auto reference = Feed(*engine, 2, tokens, 16);
  engine->TruncateTo(2, 0);

  // The same tokens beside three other sequences of different lengths and widths.
  const auto other = model->tokenizer().Tokenize("Something else entirely, about trains and their timetables.", true,
                                                 SpecialTokens::kAsText);
  std::vector<float> logits;
  for (size_t at = 0; at < tokens.size();) {
    Batch batch;
    int row = -1;
    for (SeqId seq = 0; seq < 4; ++seq) {
      const auto& source = seq == 2 ? tokens : other;
      for (int i = 0; i < 1 + seq * 3; ++i) {
        const Pos pos = engine->Length(seq) + i;
        if (pos >= static_cast<Pos>(source.size())) break;
        const bool last_of_all = seq == 2 && pos == static_cast<Pos>(tokens.size()) - 1;
        const int added = batch.Add({source[static_cast<size_t>(pos)], pos, seq, last_of_all});
        if (last_of_all) row = added;
      }
    }
    ASSERT_TRUE(engine->Decode(batch).ok());
    at = static_cast<size_t>(engine->Length(2));
    if (row >= 0) logits.assign(engine->Logits(row).begin(), engine->Logits(row).end());
  }
  EXPECT_TRUE(SameBits(logits, reference));
}

// Whichever kernels were the faster on this machine, and for which types.
TEST(KernelTrialsTest, LogitsDoNotDependOnTheBatchWhoeverWins) {
  const std::string path = testing::TempDir() + "/kernel-trials";
  for (int winners = 0; winners < 8; ++winners) {
    const auto winner = [&](int bit) { return (winners >> bit) % 2 == 0 ? "ggml" : "outrider"; };
    std::ofstream(path) << "q8_0 " << winner(0) << "\nq4_K " << winner(1) << "\nattention " << winner(2) << "\n";
    ModelOptions options;
    options.path = ModelPath("smollm2-hybrid-19m.gguf");
    options.kernel_trials = path;
    auto model = LlamaModel::Load(options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto tokens = (*model)->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
    auto engine = MakeEngine(*model);
    EXPECT_EQ(engine->info().exactness, "");
    const auto reference = Feed(*engine, 0, tokens, 1);
    for (const int slice : {2, 5, 32}) {
      engine->TruncateTo(0, 0);
      EXPECT_TRUE(SameBits(Feed(*engine, 0, tokens, slice), reference)) << (*model)->kernels() << ", " << slice;
    }
  }
}

TEST_P(LlamaEngineTest, RowsThatFillGapsLeaveNoTrace) {
  auto model = LoadModel(GetParam());
  const auto tokens = model->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  ContextOptions options;
  options.n_sequences = 7;
  // Of each engine: five sequences go on while 2 is idle and 4 has never been used.
  const auto run = [&](bool fill_gaps, std::vector<float>* beside) {
    options.fill_gaps = fill_gaps;
    auto engine = MakeEngine(model, options);
    const bool traceless = engine->info().rollback == Rollback::kDropCells;
    const std::vector<SequenceRows> step = {{0, 1}, {1, 1}, {3, 1}, {5, 1}, {6, 1}};
    StepLayout layout;
    engine->LayOut(step, &layout);
    EXPECT_EQ(layout.parts, fill_gaps && traceless ? std::vector<int>({7}) : std::vector<int>({2, 1, 2}));
    constexpr Pos kIdle = 10;  // tokens
    Feed(*engine, 2, {tokens.begin(), tokens.begin() + kIdle}, 16);
    for (Pos pos = 0; pos < 20; ++pos) {
      Batch batch;
      for (const SeqId seq : {0, 1, 3, 5, 6}) batch.Add({tokens[static_cast<size_t>(pos + seq)], pos, seq, true});
      EXPECT_TRUE(engine->Decode(batch).ok());
      for (int row = 0; row < 5; ++row) {
        const auto logits = engine->Logits(row);
        beside->insert(beside->end(), logits.begin(), logits.end());
      }
    }
    EXPECT_EQ(engine->Length(2), kIdle);
    EXPECT_EQ(engine->Length(4), 0);
    const auto idle = Feed(*engine, 2, tokens, 16), unused = Feed(*engine, 4, tokens, 16);
    EXPECT_TRUE(SameBits(idle, unused));
    return idle;
  };
  std::vector<float> beside_fillers, beside_none;
  EXPECT_TRUE(SameBits(run(true, &beside_fillers), run(false, &beside_none)));
  EXPECT_TRUE(SameBits(beside_fillers, beside_none));
}

TEST_P(LlamaEngineTest, GapsAreFilledWhereARowCostsLessThanAnotherPart) {
  ContextOptions options;
  options.n_sequences = 5;
  auto engine = MakeEngine(LoadModel(GetParam()), options);
  if (engine->info().rollback != Rollback::kDropCells) return;
  const auto parts = [&](const std::vector<SequenceRows>& step) {
    StepLayout layout;
    engine->LayOut(step, &layout);
    return layout.parts;
  };
  EXPECT_EQ(parts({{0, 1}, {1, 1}, {3, 1}}), std::vector<int>({4}));
  EXPECT_EQ(parts({{0, 1}, {2, 1}}), std::vector<int>({1, 1})) << "three rows may cost more than twice one";
  EXPECT_EQ(parts({{0, 1}, {2, 1}, {4, 1}}), std::vector<int>({1, 1, 1})) << "five more than three times one";
  EXPECT_EQ(parts({{0, 2}, {1, 2}, {3, 2}}), std::vector<int>({4, 2})) << "drafts leave gaps as they are";
}

TEST_P(LlamaEngineTest, TruncatedTokensLeaveNoTrace) {
  auto model = LoadModel(GetParam());
  auto tokens = model->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  auto engine = MakeEngine(model);
  const auto reference = Feed(*engine, 0, tokens, 32);
  const Pos kept = engine->TruncateTo(0, static_cast<Pos>(tokens.size()) - 20);
  EXPECT_EQ(kept, engine->Length(0));
  EXPECT_EQ(kept, engine->info().rollback == Rollback::kDropCells ? static_cast<Pos>(tokens.size()) - 20 : 0);
  EXPECT_TRUE(SameBits(Feed(*engine, 0, tokens, 5), reference));
}

TEST_P(LlamaEngineTest, ASavedSequenceGoesOnAsBefore) {
  auto model = LoadModel(GetParam());
  const auto tokens = model->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  const std::vector<Token> head(tokens.begin(), tokens.end() - 10);
  auto engine = MakeEngine(model);
  Feed(*engine, 0, head, 32);
  auto state = engine->SaveSequence(0);
  ASSERT_TRUE(state.ok());
  const auto reference = Feed(*engine, 0, tokens, 4);
  ASSERT_TRUE(engine->RestoreSequence(3, *state, static_cast<Pos>(head.size())).ok());
  EXPECT_TRUE(SameBits(Feed(*engine, 3, tokens, 4), reference));
  EXPECT_FALSE(
      engine->RestoreSequence(1, std::span(*state).first(state->size() / 2), static_cast<Pos>(head.size())).ok());
  EXPECT_EQ(engine->Length(1), 0);
}

// A running state goes back where it was told to keep one. tests/rollback has the thousand ways to do so.
class RunningStateTest : public testing::TestWithParam<bool> {
 protected:
  RunningStateTest() {
    options_.device_snapshots = GetParam();
    engine_ = MakeEngine(model_, options_);
  }

  std::vector<Token> First(size_t count) const {
    return {tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(count)};
  }

  // The next token of the text, and others that are not.
  void DecodeWithDraft(int wrong) {
    const Pos length = engine_->Length(0);
    Batch batch;
    batch.Add({tokens_[static_cast<size_t>(length)], length, 0, true});
    for (int i = 1; i <= wrong; ++i) batch.Add({7 + i, length + i, 0, true});
    ASSERT_TRUE(engine_->Decode(batch).ok());
  }

  std::shared_ptr<LlamaModel> model_ = LoadModel("smollm2-hybrid-19m.gguf");
  std::vector<Token> tokens_ = model_->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  std::vector<float> reference_ = Feed(*MakeEngine(model_), 0, tokens_, 32);
  ContextOptions options_;
  std::unique_ptr<LlamaEngine> engine_;
};

TEST_P(RunningStateTest, IsFoundOutAtLoad) {
  EXPECT_EQ(engine_->info().rollback, GetParam() ? Rollback::kDeviceSnapshots : Rollback::kReplay);
  EXPECT_EQ(engine_->info().device_snapshots > 0, GetParam());
  EXPECT_EQ(engine_->info().exactness, "");
}

TEST_P(RunningStateTest, GoesBackToBeforeTheDraft) {
  Feed(*engine_, 0, First(40), 32);
  engine_->SaveState(0);
  DecodeWithDraft(4);
  EXPECT_EQ(engine_->TruncatedLength(0, 41), GetParam() ? 41 : 40);
  EXPECT_EQ(engine_->TruncateTo(0, 41), GetParam() ? 41 : 40);
  EXPECT_TRUE(SameBits(Feed(*engine_, 0, tokens_, 8), reference_));
}

TEST_P(RunningStateTest, GoesBackOnceByTheBackendsSnapshots) {
  Feed(*engine_, 0, First(40), 32);
  DecodeWithDraft(4);
  EXPECT_EQ(engine_->TruncateTo(0, 43), GetParam() ? 43 : 0);
  EXPECT_EQ(engine_->TruncateTo(0, 41), 0);
  EXPECT_TRUE(SameBits(Feed(*engine_, 0, tokens_, 8), reference_));
}

TEST_P(RunningStateTest, IsFreeToGoBackWhereTheBatchIsOfOnePart) {
  const int free = engine_->info().device_snapshots;
  const auto free_rollback = [&](std::vector<int> widths) {  // by sequence; 0 = not in the step
    std::vector<SequenceRows> step;
    for (size_t seq = 0; seq < widths.size(); ++seq) {
      if (widths[seq] > 0) step.push_back({static_cast<SeqId>(seq), widths[seq]});
    }
    StepLayout layout;
    engine_->LayOut(step, &layout);
    return layout.free_rollback;
  };
  EXPECT_EQ(free_rollback({5}), free);
  EXPECT_EQ(free_rollback({5, 5, 5}), free);
  EXPECT_EQ(free_rollback({5, 4}), 0);
  EXPECT_EQ(free_rollback({1, 5}), 0);
  EXPECT_EQ(free_rollback({0, 5, 5}), free);
  EXPECT_EQ(free_rollback({5, 0, 5, 5}), 0) << "not neighbours";
  EXPECT_EQ(free_rollback({300, 300}), 0) << "more than are computed at once";
}

TEST_P(RunningStateTest, WaitsWhileOthersAreDecoded) {
  Feed(*engine_, 0, First(40), 32);
  engine_->SaveState(0);
  DecodeWithDraft(4);
  const Pos length = engine_->TruncateTo(0, 41);
  Feed(*engine_, 1, tokens_, 8);
  Feed(*engine_, 3, First(20), 8);
  EXPECT_EQ(engine_->Length(0), length);
  EXPECT_TRUE(SameBits(Feed(*engine_, 0, tokens_, 8), reference_));
}

TEST_P(RunningStateTest, ComesBackToWhatItWasToldToRemember) {
  Feed(*engine_, 0, First(50), 32);
  engine_->Remember(0);
  Feed(*engine_, 0, tokens_, 8);
  EXPECT_EQ(engine_->TruncatedLength(0, 60), 50);
  EXPECT_EQ(engine_->TruncateTo(0, 60), 50);
  EXPECT_TRUE(SameBits(Feed(*engine_, 0, tokens_, 8), reference_));
  EXPECT_EQ(engine_->TruncateTo(0, 49), 0) << "before all that is remembered";
  EXPECT_EQ(engine_->TruncatedLength(0, 60), 0) << "and that is forgotten then";
}

TEST_P(RunningStateTest, RemembersNothingWithoutMemoryForIt) {
  options_.snapshot_mib = 0;
  engine_ = MakeEngine(model_, options_);
  EXPECT_EQ(engine_->info().rollback, Rollback::kReplay) << "a state before a draft is needed in any case";
  Feed(*engine_, 0, First(50), 32);
  engine_->Remember(0);
  Feed(*engine_, 0, tokens_, 8);
  EXPECT_EQ(engine_->TruncateTo(0, 60), 0);
}

INSTANTIATE_TEST_SUITE_P(DeviceSnapshots, RunningStateTest, testing::Bool());

INSTANTIATE_TEST_SUITE_P(Models, LlamaEngineTest, testing::ValuesIn(kSetups), SetupName);

TEST(LlamaEngineTest, TwoModelsLiveInOneProcess) {
  auto target = LoadModel("smollm2-draft-16m.gguf");
  auto draft = LoadModel("smollm2-hybrid-19m.gguf");
  ContextOptions small;
  small.cache_type_k = small.cache_type_v = "q8_0";
  small.n_sequences = 1;
  auto first = MakeEngine(target);
  auto second = MakeEngine(draft, small);
  const auto tokens = target->tokenizer().Tokenize(kText, true, SpecialTokens::kAsText);
  const auto alone = Feed(*first, 0, tokens, 8);
  first->TruncateTo(0, 0);
  for (size_t count = 8; count <= tokens.size(); count += 8) {
    const std::vector<Token> part(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(count));
    Feed(*first, 0, part, 8);
    Feed(*second, 0, part, 8);
  }
  EXPECT_TRUE(SameBits(Feed(*first, 0, tokens, 8), alone));
  EXPECT_EQ(target->tokenizer().fingerprint(), draft->tokenizer().fingerprint());
}

TEST(LlamaEngineTest, SettingsThatBreakExactnessSaySo) {
  ContextOptions options;
  options.cache_type_k = options.cache_type_v = "f16";
  auto model = LoadModel("smollm2-draft-16m.gguf", Kernels::kGgml);
  EXPECT_NE(MakeEngine(model, options)->info().exactness, "");
  ModelOptions other;
  other.path = ModelPath("smollm2-hybrid-19m.gguf");
  other.kernels = Kernels::kOutrider;
  EXPECT_NE(LlamaModel::Load(other).status().message().find("--kernels"), std::string::npos)
      << "attention is one choice for all models";
  model.reset();
  model = LoadModel("smollm2-draft-16m.gguf", Kernels::kOutrider);
  if (model->attention() != Attention::kOurs) GTEST_SKIP() << "no kernels for this CPU";
  EXPECT_EQ(MakeEngine(model, options)->info().exactness, "");
  options = {};
  options.exactness = Exactness::kOff;
  EXPECT_NE(MakeEngine(model, options)->info().exactness, "");
}

TEST(LlamaEngineTest, BadOptionsAreOneSentence) {
  auto model = LoadModel("smollm2-draft-16m.gguf");
  const auto message = [&](ContextOptions options) {
    auto engine = LlamaEngine::Create(model, options);
    EXPECT_FALSE(engine.ok());
    return engine.status().message();
  };
  ContextOptions options;
  options.context_tokens = 10'000'000;
  EXPECT_NE(message(options).find("trained for"), std::string::npos);
  options = {};
  options.cache_type_k = "q9";
  EXPECT_NE(message(options).find("q9"), std::string::npos);
  options = {};
  options.n_sequences = 0;
  EXPECT_NE(message(options).find("--parallel"), std::string::npos);
}

TEST(LlamaModelTest, BrokenFilesAreOneSentence) {
  const auto message = [](const std::string& path) {
    ModelOptions options;
    options.path = path;
    auto model = LlamaModel::Load(options);
    EXPECT_FALSE(model.ok());
    return model.status().message();
  };
  EXPECT_NE(message("/nonexistent.gguf").find("does not exist"), std::string::npos);
  EXPECT_NE(message("/tmp").find("directory"), std::string::npos);
  const auto folder = std::filesystem::temp_directory_path() / "outrider-llama-model-test";
  std::filesystem::create_directories(folder);
  const std::string text = folder / "text.gguf", cut = folder / "cut.gguf";
  std::ofstream(text) << "this is no model";
  EXPECT_NE(message(text).find("not a GGUF"), std::string::npos);
  std::filesystem::copy_file(ModelPath("smollm2-draft-16m.gguf"), cut,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(cut, 5'000'000);
  EXPECT_NE(message(cut).find("cut short"), std::string::npos) << message(cut);
  std::filesystem::remove_all(folder);
}

TEST(LlamaTokenizerTest, TextSurvivesTheRoundTrip) {
  auto model = LoadModel("smollm2-draft-16m.gguf");
  const Tokenizer& tokenizer = model->tokenizer();
  const std::string text = "Hello, wörld! 漢字 🙂\n\tindented";
  std::string back;
  for (Token token : tokenizer.Tokenize(text, false, SpecialTokens::kAsText)) back += tokenizer.Piece(token, false);
  EXPECT_EQ(back, text);
  EXPECT_EQ(tokenizer.Tokenize("<|im_start|>", false, SpecialTokens::kParse).size(), 1U);
  EXPECT_GT(tokenizer.Tokenize("<|im_start|>", false, SpecialTokens::kAsText).size(), 1U);
  EXPECT_TRUE(tokenizer.EndsGeneration(tokenizer.Tokenize("<|im_end|>", false, SpecialTokens::kParse)[0]));
}

TEST(LlamaFiltersTest, LibrarysFiltersReachTheDraw) {
  auto model = LoadModel("smollm2-draft-16m.gguf");
  LlamaFilterFactory factory(model, 1024);
  std::vector<float> logits(static_cast<size_t>(model->tokenizer().vocabulary_size()), 0.0f);
  logits[100] = 5;
  logits[200] = 4.9f;
  SamplingOptions options;
  options.temperature = 0;
  const auto draw = [&](const SamplingOptions& o, const std::vector<Token>& prompt) {
    auto sampler = Sampler::Create(o, prompt, factory);
    EXPECT_TRUE(sampler.ok());
    return (*sampler)->Draw(logits, 3);
  };
  EXPECT_EQ(draw(options, {}), 100);
  options.repeat_penalty = 1.5f;
  EXPECT_EQ(draw(options, {100}), 200) << "the prompt counts for the penalty";
  options.repeat_penalty = 1;
  options.logit_bias = {{7, 10.0f}};
  EXPECT_EQ(draw(options, {}), 7);
  options = {};
  options.temperature = 5;
  options.top_k = 2;
  for (int i = 0; i < 20; ++i) {
    options.seed = static_cast<uint64_t>(i);
    const Token token = draw(options, {});
    EXPECT_TRUE(token == 100 || token == 200);
  }
}

// With our search for the breakers DRY punishes the same tokens by the same amounts as with libllama's.
TEST(LlamaFiltersTest, DryIsLibrarysDry) {
  auto model = LoadModel("smollm2-draft-16m.gguf");
  LlamaFilterFactory factory(model, 1024);
  const LlamaTokenizer& tokenizer = model->tokenizer();
  const std::vector<std::string> lists[] = {
      {"\n", ":", "\"", "*"}, {"the sea", "he s"}, {"ing th", "a"}, {"é", "🐋"}, {"\x9f"}, {}};
  const std::string text =
      "He said: the sea is the sea, swimming there. The sea is the sea, swimming there: \"é🐋é🐋\"";
  const std::vector<Token> tokens = tokenizer.Tokenize(text + text + text, false, SpecialTokens::kAsText);
  for (const std::vector<std::string>& breakers : lists) {
    SamplingOptions options;
    options.dry_multiplier = 0.8f;
    options.dry_sequence_breakers = breakers;
    std::vector<const char*> pointers;
    for (const std::string& breaker : breakers) pointers.push_back(breaker.c_str());
    llama_sampler* librarys =
        llama_sampler_init_dry(tokenizer.vocab(), options.dry_multiplier, options.dry_base, options.dry_allowed_length,
                               1024, pointers.data(), pointers.size());
    const std::unique_ptr<Filter> ours = factory.Dry(options);
    int punished = 0;
    for (const Token token : tokens) {
      ours->Accept(token);
      llama_sampler_accept(librarys, token);
      std::vector<Candidate> mine;
      std::vector<llama_token_data> theirs;
      for (Token t = 0; t < tokenizer.vocabulary_size(); ++t) {
        mine.push_back({t, 0, 0});
        theirs.push_back({t, 0, 0});
      }
      Candidates candidates{mine.data(), mine.size(), false};
      llama_token_data_array array{theirs.data(), theirs.size(), -1, false};
      ours->Apply(candidates);
      llama_sampler_apply(librarys, &array);
      for (size_t i = 0; i < mine.size(); ++i) {
        ASSERT_EQ(mine[i].logit, theirs[i].logit) << tokenizer.Piece(mine[i].token, true);
        punished += mine[i].logit < 0;
      }
    }
    EXPECT_GT(punished, 0);
    llama_sampler_free(librarys);
  }
}

TEST(LlamaFiltersTest, AGrammarHoldsUntilItIsFulfilled) {
  auto model = LoadModel("smollm2-draft-16m.gguf");
  LlamaFilterFactory factory(model, 1024);
  SamplingOptions options;
  options.temperature = 0;
  options.grammar.text = "root ::= \"yes\" | \"no\"";
  auto sampler = Sampler::Create(options, {}, factory);
  ASSERT_TRUE(sampler.ok()) << sampler.status().message();
  const std::vector<float> logits(static_cast<size_t>(model->tokenizer().vocabulary_size()), 0.0f);
  std::string text;
  Token token = kNoToken;
  for (int i = 0; i < 6; ++i) {
    token = (*sampler)->Draw(logits, i);
    ASSERT_NE(token, kNoToken);
    if (model->tokenizer().EndsGeneration(token)) break;
    (*sampler)->Accept(token);
    text += model->tokenizer().Piece(token, false);
  }
  EXPECT_TRUE(text == "yes" || text == "no") << text;
  EXPECT_TRUE(model->tokenizer().EndsGeneration(token));
  options.grammar.text = "root ::= (";
  EXPECT_EQ(Sampler::Create(options, {}, factory).status().field(), "grammar");
}

}  // namespace
}  // namespace outrider
