// Heads on the real library: an EAGLE-3 head with random weights for the in-repo draft model, written by the test.
#include "engine/llama/llama_head.h"

#include <gguf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include "base/free_with.h"
#include "engine/llama/head_file.h"

namespace outrider {
namespace {

constexpr int kSequences = 3;
constexpr int64_t kWidth = 256, kHeadCount = 4, kFeedForward = 64, kOwnTokens = 1000;

std::string TargetPath() {
  return std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf";
}

// Writes a head; `change` may change its metadata.
std::string WriteHead(const std::string& name, const std::function<void(gguf_context*)>& change = {}) {
  const std::string path = testing::TempDir() + name;
  const std::unique_ptr<gguf_context, FreeWith<gguf_free>> file(gguf_init_empty());
  const std::unique_ptr<gguf_context, FreeWith<gguf_free>> target(
      gguf_init_from_file(TargetPath().c_str(), {true, nullptr}));
  gguf_set_kv(file.get(), target.get());  // its vocabulary
  gguf_set_val_str(file.get(), "general.architecture", "eagle3");
  const std::map<const char*, int64_t> values = {
      {"context_length", 512},        {"embedding_length", kWidth},          {"block_count", 1},
      {"target_hidden_size", kWidth}, {"feed_forward_length", kFeedForward}, {"attention.head_count", kHeadCount}};
  for (const auto& [key, value] : values)
    gguf_set_val_u32(file.get(), (std::string("eagle3.") + key).c_str(), static_cast<uint32_t>(value));
  gguf_set_val_f32(file.get(), "eagle3.attention.layer_norm_rms_epsilon", 1e-5f);
  const int32_t layers[] = {0, 2, 4};
  gguf_set_arr_data(file.get(), "eagle3.target_layers", GGUF_TYPE_INT32, layers, 3);
  if (change) change(file.get());

  const std::unique_ptr<ggml_context, FreeWith<ggml_free>> tensors(ggml_init({16 << 20, nullptr, false}));
  std::minstd_rand random(7);
  const auto add = [&](const char* tensor_name, int64_t inputs, int64_t outputs) {
    ggml_tensor* tensor = outputs == 0 ? ggml_new_tensor_1d(tensors.get(), GGML_TYPE_F32, inputs)
                                       : ggml_new_tensor_2d(tensors.get(), GGML_TYPE_F32, inputs, outputs);
    const float scale = outputs == 0 ? 0.2f : 2 / std::sqrt(static_cast<float>(inputs));
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i) {
      const float noise = static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 0.5f;
      static_cast<float*>(tensor->data)[i] = noise * scale * 2 + (outputs == 0 ? 1.0f : 0.0f);
    }
    ggml_set_name(tensor, tensor_name);
    gguf_add_tensor(file.get(), tensor);
  };
  add("fc.weight", 3 * kWidth, kWidth);
  add("blk.0.attn_norm.weight", kWidth, 0);
  add("blk.0.attn_norm_2.weight", kWidth, 0);
  for (const char* name_of_input : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"})
    add(name_of_input, 2 * kWidth, kWidth);
  add("blk.0.attn_output.weight", kWidth, kWidth);
  add("blk.0.ffn_norm.weight", kWidth, 0);
  add("blk.0.ffn_gate.weight", kWidth, kFeedForward);
  add("blk.0.ffn_up.weight", kWidth, kFeedForward);
  add("blk.0.ffn_down.weight", kFeedForward, kWidth);
  add("output_norm.weight", kWidth, 0);
  add("output.weight", kWidth, kOwnTokens);
  ggml_tensor* ids = ggml_new_tensor_1d(tensors.get(), GGML_TYPE_I64, kOwnTokens);
  for (int64_t i = 0; i < kOwnTokens; ++i) static_cast<int64_t*>(ids->data)[i] = 3 * i + 1;
  ggml_set_name(ids, "d2t");
  gguf_add_tensor(file.get(), ids);
  EXPECT_TRUE(gguf_write_to_file(file.get(), path.c_str(), false));
  return path;
}

std::unique_ptr<LlamaEngine> MakeTarget() {
  ModelOptions options;
  options.path = TargetPath();
  auto model = LlamaModel::Load(options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  ContextOptions context;
  context.n_sequences = kSequences;
  context.context_tokens = 256 * kSequences;
  context.threads = 2;
  auto engine = LlamaEngine::Create(*model, context);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(*engine);
}

Result<std::unique_ptr<LlamaHead>> Load(const std::string& path, const LlamaEngine& target) {
  ModelOptions options;
  options.path = path;
  return LlamaHead::LoadEagle3(options, {}, target);
}

std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

struct Output {
  std::vector<float> logits, state;
};

// Rows are computed in different company, and not by kernels that are chosen for exactness.
void ExpectNear(const Output& a, const Output& b) {
  const auto near = [](const std::vector<float>& one, const std::vector<float>& other) {
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i) {
      if (std::isinf(one[i]) || std::isinf(other[i])) {
        ASSERT_EQ(one[i], other[i]) << i;
      } else {
        ASSERT_NEAR(one[i], other[i], 0.02f) << i;
      }
    }
  };
  near(a.logits, b.logits);
  near(a.state, b.state);
}

class LlamaHeadTest : public testing::Test {
 protected:
  LlamaHeadTest() : target_(MakeTarget()) {
    auto head = Load(WriteHead("llama_head_test.gguf"), *target_);
    EXPECT_TRUE(head.ok()) << head.status().message();
    head_ = std::move(*head);
    EXPECT_TRUE(target_->ProvideHidden(head_->info().layers).ok());
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      Batch batch;
      for (Pos pos = 0; pos < kRows; ++pos) batch.Add({TokenAt(seq, pos), pos, seq, false, true});
      EXPECT_TRUE(target_->Decode(batch).ok());
      for (int row = 0; row < kRows; ++row) states_[{seq, row}] = Copy(target_->Hidden(row));
    }
  }

  static constexpr Pos kRows = 20;
  static Token TokenAt(SeqId seq, Pos pos) { return 100 + (seq * 37 + pos * 11) % 50; }

  HeadRow RowAt(SeqId seq, Pos pos) const { return {TokenAt(seq, pos + 1), pos, seq, states_.at({seq, pos}), true}; }

  // The outputs of row `place` of `seq`, which must be the next.
  Output OneRow(SeqId seq, Pos place) {
    const HeadRow row = RowAt(seq, place);
    EXPECT_TRUE(head_->Decode(std::span(&row, 1), true).ok());
    return {Copy(head_->Logits(0)), Copy(head_->State(0))};
  }

  std::unique_ptr<LlamaEngine> target_;
  std::unique_ptr<LlamaHead> head_;
  std::map<std::pair<SeqId, Pos>, std::vector<float>> states_;
};

TEST_F(LlamaHeadTest, RowsAreTheirOwn) {
  std::map<std::pair<SeqId, Pos>, Output> expected;
  for (SeqId seq = 0; seq < kSequences; ++seq) {
    for (Pos place = 0; place + 1 < kRows; ++place) expected[{seq, place}] = OneRow(seq, place);
    head_->TruncateTo(seq, 0);
    EXPECT_EQ(head_->Length(seq), 0);
  }
  // Several sequences of unequal length at once, with a gap; with outputs and without.
  const std::vector<std::vector<int>> steps = {{3, 0, 5}, {1, 2, 1}, {4, 4, 4}, {1, 7, 2}};
  bool wants_outputs = true;
  for (const std::vector<int>& widths : steps) {
    std::vector<HeadRow> rows;
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      for (int i = 0; i < widths[static_cast<size_t>(seq)]; ++i) rows.push_back(RowAt(seq, head_->Length(seq) + i));
    }
    ASSERT_TRUE(head_->Decode(rows, wants_outputs).ok());
    for (size_t i = 0; wants_outputs && i < rows.size(); ++i) {
      const auto row = static_cast<int>(i);
      ExpectNear({Copy(head_->Logits(row)), Copy(head_->State(row))}, expected.at({rows[i].seq, rows[i].place}));
    }
    wants_outputs = !wants_outputs;
  }
}

TEST_F(LlamaHeadTest, SaysItsOwnTokensOnly) {
  const Output output = OneRow(0, 0);
  ASSERT_EQ(output.logits.size(), 49152u);
  for (size_t token = 0; token < output.logits.size(); ++token) {
    const bool own = token % 3 == 1 && token < 3 * kOwnTokens;
    ASSERT_EQ(std::isfinite(output.logits[token]), own) << token;
  }
}

TEST_F(LlamaHeadTest, GoesOnFromItsOwnStateAndTakesItBack) {
  for (Pos place = 0; place < 4; ++place) OneRow(1, place);
  const Output expected = OneRow(1, 4);
  head_->TruncateTo(1, 4);
  Output last = OneRow(1, 4);
  for (int i = 0; i < 3; ++i) {  // the state may be given where it lies
    const HeadRow row{static_cast<Token>(500 + i), 5 + i, 1, head_->State(0), false};
    ASSERT_TRUE(head_->Decode(std::span(&row, 1), true).ok());
    const Output next{Copy(head_->Logits(0)), Copy(head_->State(0))};
    EXPECT_NE(next.state, last.state);
    last = next;
  }
  EXPECT_EQ(head_->Length(1), 8);
  head_->TruncateTo(1, 4);
  ExpectNear(OneRow(1, 4), expected);
}

TEST_F(LlamaHeadTest, WhatDoesNotFitIsOneSentence) {
  const auto refused = [&](const char* saying, const std::function<void(gguf_context*)>& change) {
    const auto head = Load(WriteHead("llama_head_test_wrong.gguf", change), *target_);
    ASSERT_FALSE(head.ok()) << saying;
    EXPECT_EQ(head.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(head.status().message().find(saying), std::string::npos) << head.status().message();
  };
  const auto number = [](const char* key, uint32_t value) {
    return [key, value](gguf_context* file) { gguf_set_val_u32(file, key, value); };
  };
  refused("states of 512 numbers", number("eagle3.target_hidden_size", 512));
  refused("uses weights of the model", number("eagle3.embedding_length", 128));
  refused("one layer", number("eagle3.block_count", 2));
  refused("differ in length", number("eagle3.attention.key_length", 32));
  refused("how wide", number("eagle3.attention.head_count", 0));
  refused("how wide", [](gguf_context* file) { gguf_set_val_str(file, "eagle3.embedding_length", "wide"); });
  refused("three layers", [](gguf_context* file) { gguf_remove_key(file, "eagle3.target_layers"); });
  refused("layer 6 of its target", [](gguf_context* file) {
    const int32_t layers[] = {0, 2, 6};
    gguf_set_arr_data(file, "eagle3.target_layers", GGUF_TYPE_INT32, layers, 3);
  });
  refused("no vocabulary", [](gguf_context* file) { gguf_remove_key(file, "tokenizer.ggml.tokens"); });
  refused("not an EAGLE-3 head, but llama",
          [](gguf_context* file) { gguf_set_val_str(file, "general.architecture", "llama"); });
}

TEST_F(LlamaHeadTest, AFileThatWasCutIsOneSentence) {
  const std::string path = WriteHead("llama_head_test_cut.gguf");
  for (const uintmax_t cut : {uintmax_t{100}, std::filesystem::file_size(path) / 2}) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - cut);
    const auto head = Load(path, *target_);
    ASSERT_FALSE(head.ok());
    EXPECT_EQ(head.status().message().find('\n'), std::string::npos) << head.status().message();
  }
}

TEST(HeadFileTest, TellsHeadsFromModels) {
  EXPECT_EQ(FileArchitecture(TargetPath()), "llama");
  EXPECT_EQ(FileArchitecture("/nowhere"), "");
  EXPECT_TRUE(CheckIsNoHead(TargetPath()).ok());
  EXPECT_TRUE(CheckIsNoHead("/nowhere").ok()) << "others say that better";
  EXPECT_FALSE(CheckIsNoHead(WriteHead("head_file_test.gguf")).ok());
  EXPECT_FALSE(FileHasMtpHead(TargetPath()));
}

}  // namespace
}  // namespace outrider
