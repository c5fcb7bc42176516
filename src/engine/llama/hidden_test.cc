// Hidden states on the real library and the in-repo models: those of a row are its own, whatever batch it is in.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "engine/llama/llama_engine.h"
#include "engine/padded_engine.h"

namespace outrider {
namespace {

constexpr int kSequences = 4;
constexpr int kMicroBatch = 32;

std::shared_ptr<LlamaModel> LoadModel(const std::string& name) {
  ModelOptions options;
  options.path = std::string(OUTRIDER_MODELS_DIR) + "/" + name;
  auto model = LlamaModel::Load(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

std::unique_ptr<LlamaEngine> MakeEngine(const std::shared_ptr<LlamaModel>& model) {
  ContextOptions options;
  options.n_sequences = kSequences;
  options.context_tokens = 256 * kSequences;
  options.micro_batch = kMicroBatch;
  options.threads = 2;
  auto engine = LlamaEngine::Create(model, options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(*engine);
}

// Some text for each sequence.
Token TokenAt(SeqId seq, Pos pos) {
  return 100 + (seq * 37 + pos * 11) % 50;
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

struct RowResult {
  std::vector<float> hidden, logits;
  bool operator==(const RowResult&) const = default;
};
using Results = std::map<std::pair<SeqId, Pos>, RowResult>;

// Decodes the next `widths[i]` rows of sequence i (0 = not in the batch) and keeps what they say. Only the last row of
// a sequence asks for logits.
void DecodeStep(Engine& engine, const std::vector<int>& widths, bool wants_hidden, Results* results) {
  Batch batch;
  for (size_t i = 0; i < widths.size(); ++i) {
    const auto seq = static_cast<SeqId>(i);
    const Pos begin = engine.Length(seq);
    for (int row = 0; row < widths[i]; ++row) {
      batch.Add({TokenAt(seq, begin + row), begin + row, seq, row == widths[i] - 1, wants_hidden});
    }
  }
  const Status status = engine.Decode(batch);
  ASSERT_TRUE(status.ok()) << status.message();
  for (int row = 0; row < batch.size(); ++row) {
    const BatchRow& asked = batch.rows()[static_cast<size_t>(row)];
    RowResult& result = (*results)[{asked.seq, asked.pos}];
    if (wants_hidden) result.hidden = Copy(engine.Hidden(row));
    if (asked.wants_logits) result.logits = Copy(engine.Logits(row));
  }
}

// The first `length` rows of each sequence, one at a time.
Results OneByOne(Engine& engine, Pos length, bool wants_hidden) {
  Results results;
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    std::vector<int> widths(kSequences, 0);
    widths[static_cast<size_t>(seq)] = 1;
    while (engine.Length(seq) < length) DecodeStep(engine, widths, wants_hidden, &results);
  }
  return results;
}

class HiddenTest : public testing::TestWithParam<const char*> {
 protected:
  HiddenTest() : model_(LoadModel(GetParam())) {}

  const std::shared_ptr<LlamaModel> model_;
};

TEST_P(HiddenTest, DoNotDependOnTheBatch) {
  const std::vector<int> layers = {0, 1, 2};
  auto reference = MakeEngine(model_), engine = MakeEngine(model_);
  ASSERT_TRUE(reference->ProvideHidden(layers).ok());
  ASSERT_TRUE(engine->ProvideHidden(layers).ok());
  const Results expected = OneByOne(*reference, 48, true);
  Results results;
  // One sequence; neighbours of equal and of unequal width; a gap; more rows than are computed at once.
  const std::vector<std::vector<int>> steps = {{5},          {3, 3, 3},  {1, 4, 1, 2}, {2, 0, 7, 1},
                                               {1, 1, 0, 1}, {0, 36, 1}, {6, 1, 0, 40}};
  for (const std::vector<int>& widths : steps) DecodeStep(*engine, widths, true, &results);
  for (const auto& [row, result] : results) {
    const RowResult& alone = expected.at(row);
    EXPECT_EQ(result.hidden.size(), layers.size() * static_cast<size_t>(model_->EmbeddingSize()));
    EXPECT_TRUE(result.hidden == alone.hidden) << "sequence " << row.first << ", position " << row.second;
    if (!result.logits.empty()) {
      EXPECT_TRUE(result.logits == alone.logits) << "sequence " << row.first << ", position " << row.second;
    }
  }
}

// A step that is decoded part by part is taken back like any other.
TEST_P(HiddenTest, RowsAreTakenBackAfterAStepOfSeveralParts) {
  auto reference = MakeEngine(model_), engine = MakeEngine(model_);
  ASSERT_TRUE(reference->ProvideHidden(std::vector<int>{1}).ok());
  ASSERT_TRUE(engine->ProvideHidden(std::vector<int>{1}).ok());
  const Results expected = OneByOne(*reference, 30, true);
  Results results;
  DecodeStep(*engine, {6, 6, 6}, true, &results);
  for (const SeqId seq : {0, 1, 2}) engine->SaveState(seq);
  DecodeStep(*engine, {1, 5, 3}, true, &results);
  for (const SeqId seq : {0, 1, 2}) engine->TruncateTo(seq, 7);
  for (int i = 0; i < 12; ++i) {
    std::vector<int> widths = {1, 1, 1, 0};
    for (const SeqId seq : {0, 1, 2}) widths[static_cast<size_t>(seq)] += 7 + i - engine->Length(seq);
    DecodeStep(*engine, widths, true, &results);
  }
  for (const auto& [row, result] : results) {
    EXPECT_TRUE(result.hidden == expected.at(row).hidden) << "sequence " << row.first << ", position " << row.second;
    EXPECT_TRUE(result.logits.empty() || result.logits == expected.at(row).logits);
  }
}

TEST_P(HiddenTest, AreTheInputsOfTheLayers) {
  auto engine = MakeEngine(model_);
  ASSERT_TRUE(engine->ProvideHidden(std::vector<int>{0}).ok());
  std::map<Token, std::vector<float>> first;
  Results results;
  DecodeStep(*engine, {60, 2, 60}, true, &results);
  DecodeStep(*engine, {60, 60}, true, &results);
  size_t again = 0;
  for (const auto& [row, result] : results) {
    const auto [known, added] = first.emplace(TokenAt(row.first, row.second), result.hidden);
    again += added ? 0 : 1;
    EXPECT_TRUE(known->second == result.hidden) << "the first layer reads the token, wherever it stands";
  }
  EXPECT_GT(again, 50U);
  std::map<std::vector<float>, Token> tokens;
  for (const auto& [token, hidden] : first) EXPECT_TRUE(tokens.emplace(hidden, token).second) << "two tokens are equal";
}

TEST_P(HiddenTest, ChangeNoLogits) {
  auto plain = MakeEngine(model_), engine = MakeEngine(model_);
  ASSERT_TRUE(engine->ProvideHidden(std::vector<int>{1}).ok());
  const Results expected = OneByOne(*plain, 20, false), with = OneByOne(*engine, 20, true);
  for (const auto& [row, result] : with) EXPECT_TRUE(result.logits == expected.at(row).logits);
}

TEST_P(HiddenTest, LayersThatAreNotThereAreOneSentence) {
  auto engine = MakeEngine(model_);
  for (const std::vector<int>& layers : {std::vector<int>{1000}, std::vector<int>{0, -1}, std::vector<int>{}}) {
    const Status status = engine->ProvideHidden(layers);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.message();
  }
  ASSERT_TRUE(engine->ProvideHidden(std::vector<int>{1, 2}).ok());
  EXPECT_TRUE(engine->ProvideHidden(std::vector<int>{1, 2}).ok());
  EXPECT_EQ(engine->ProvideHidden(std::vector<int>{2}).code(), StatusCode::kUnsupported) << "others read them";
  Results results;
  DecodeStep(*engine, {3, 1}, true, &results);  // still works
  for (const auto& [row, result] : results)
    EXPECT_EQ(result.hidden.size(), 2u * static_cast<size_t>(model_->EmbeddingSize()));
}

INSTANTIATE_TEST_SUITE_P(Models, HiddenTest, testing::Values("smollm2-draft-16m.gguf", "smollm2-hybrid-19m.gguf"),
                         [](const auto& model) {
                           return std::string(model.param).substr(8, 5) == "draft" ? "transformer" : "hybrid";
                         });

TEST(PaddedHiddenTest, RowsAreTheirOwn) {
  const auto model = LoadModel("smollm2-draft-16m.gguf");
  auto reference = MakeEngine(model), padded_by_eight = MakeEngine(model);
  PaddedEngine engine(*padded_by_eight);
  ASSERT_TRUE(reference->ProvideHidden(std::vector<int>{2}).ok());
  ASSERT_TRUE(engine.ProvideHidden(std::vector<int>{2}).ok());
  const Results expected = OneByOne(*reference, 30, true);
  Results results;
  for (const std::vector<int>& widths : {std::vector<int>{5, 12, 1}, std::vector<int>{1, 1, 8, 3}}) {
    DecodeStep(engine, widths, true, &results);
  }
  for (const auto& [row, result] : results) EXPECT_TRUE(result.hidden == expected.at(row).hidden);
}

}  // namespace
}  // namespace outrider
