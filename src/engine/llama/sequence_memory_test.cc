// A memory with a sliding window, on the real library: what it says that it would keep is what it keeps, and what it
// keeps is whole. (Running states are tested through LlamaEngine, and by tests/rollback.)
#include "engine/llama/sequence_memory.h"

#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "engine/llama/llama_model.h"

namespace outrider {
namespace {

constexpr uint32_t kWindow = 32;      // tokens
constexpr uint32_t kMicroBatch = 16;  // rows
constexpr Pos kCells = 256;           // libllama gives a sliding window no fewer
constexpr Pos kLength = 2 * kCells;   // so that cells are reused

// Writes the in-repo draft model as one of an architecture with sliding windows, in which the other tensors mean the
// same; there is no second norm in its layers. What it says does not matter here.
void WriteWithSlidingWindow(const std::string& path) {
  const std::string source = std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf";
  ggml_context* tensors = nullptr;
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> from(
      gguf_init_from_file(source.c_str(), {.no_alloc = false, .ctx = &tensors}), gguf_free);
  ASSERT_NE(from, nullptr);
  const std::unique_ptr<ggml_context, void (*)(ggml_context*)> owner(tensors, ggml_free);
  const std::unique_ptr<gguf_context, void (*)(gguf_context*)> to(gguf_init_empty(), gguf_free);
  gguf_set_kv(to.get(), from.get());
  const std::string before = "llama.", after = "cohere2.";
  for (int64_t key = 0; key < gguf_get_n_kv(from.get()); ++key) {
    const std::string name = gguf_get_key(from.get(), key);
    if (!name.starts_with(before)) continue;
    const std::string renamed = after + name.substr(before.size());
    if (gguf_get_kv_type(from.get(), key) == GGUF_TYPE_UINT32) {
      gguf_set_val_u32(to.get(), renamed.c_str(), gguf_get_val_u32(from.get(), key));
    } else {
      gguf_set_val_f32(to.get(), renamed.c_str(), gguf_get_val_f32(from.get(), key));
    }
  }
  gguf_set_val_str(to.get(), "general.architecture", "cohere2");
  gguf_set_val_u32(to.get(), "cohere2.attention.sliding_window", kWindow);
  gguf_set_val_f32(to.get(), "cohere2.attention.layer_norm_epsilon", 1e-5f);
  gguf_set_val_f32(to.get(), "cohere2.logit_scale", 1);
  for (ggml_tensor* tensor = ggml_get_first_tensor(tensors); tensor != nullptr;
       tensor = ggml_get_next_tensor(tensors, tensor)) {
    const std::string name = ggml_get_name(tensor);
    const bool known = gguf_find_tensor(from.get(), name.c_str()) >= 0;  // not so the one that holds the file's bytes
    if (known && name.find("ffn_norm") == std::string::npos) gguf_add_tensor(to.get(), tensor);
  }
  ASSERT_TRUE(gguf_write_to_file(to.get(), path.c_str(), /*only_meta=*/false));
}

class SlidingWindowTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "outrider-sliding-window.gguf";
    ASSERT_NO_FATAL_FAILURE(WriteWithSlidingWindow(path));
    ModelOptions options;
    options.path = path;
    options.kernels = Kernels::kGgml;
    auto model = LlamaModel::Load(options);
    std::filesystem::remove(path);
    ASSERT_TRUE(model.ok()) << model.status().message();
    model_ = *model;
    ASSERT_EQ(llama_model_n_swa(model_->handle()), static_cast<int32_t>(kWindow));
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 1024;
    params.n_batch = params.n_ubatch = kMicroBatch;
    params.n_seq_max = 1;
    params.n_threads = params.n_threads_batch = 2;
    // With these, ggml computes a row alone as it does beside others.
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    params.type_k = params.type_v = GGML_TYPE_BF16;
    params.swa_full = false;  // the window's layers have cells for little more than the window
    context_.reset(llama_init_from_model(model_->handle(), params));
    ASSERT_NE(context_, nullptr);
    memory_ = std::make_unique<SequenceMemory>(context_.get(), 1, RollbackFinding(), 0);
  }

  // Decodes a text up to `end`, from where the memory ends, and returns the logits of its last token.
  std::vector<float> DecodeTo(Pos end) {
    while (memory_->Length(0) < end) {
      std::vector<BatchRow> rows;
      std::vector<llama_token> tokens;
      for (Pos pos = memory_->Length(0); pos < end && rows.size() < kMicroBatch; ++pos) {
        tokens.push_back(100 + pos * 37 % 1000);
        rows.push_back({tokens.back(), pos, 0, false});
      }
      memory_->BeforeDecode(rows);
      EXPECT_EQ(llama_decode(context_.get(), llama_batch_get_one(tokens.data(), static_cast<int32_t>(tokens.size()))),
                0);
      memory_->AfterDecode(rows, 0);
    }
    const float* logits = llama_get_logits_ith(context_.get(), -1);
    return {logits, logits + model_->tokenizer().vocabulary_size()};
  }

  std::shared_ptr<LlamaModel> model_;
  std::unique_ptr<llama_context, void (*)(llama_context*)> context_{nullptr, llama_free};
  std::unique_ptr<SequenceMemory> memory_;
};

TEST_F(SlidingWindowTest, KeepsWhatItSaysAndWhatItKeepsIsWhole) {
  const std::vector<float> reference = DecodeTo(kLength);
  int kept_lengths = 0, lost_lengths = 0;
  // From nearly nothing, of which no cell is left in the window's layers, to nearly all.
  for (const Pos length : {1, 20, 100, 250, 280, 300, 400, 470, 500, 511, 512, 600}) {
    memory_->TruncateTo(0, 0);
    DecodeTo(kLength);
    const Pos expected = memory_->TruncatedLength(0, length);
    const Pos kept = memory_->TruncateTo(0, length);
    EXPECT_EQ(kept, expected) << length;
    EXPECT_EQ(memory_->Length(0), kept) << length;
    EXPECT_TRUE(kept == std::min(length, kLength) || kept == 0) << length;
    ++(kept > 0 ? kept_lengths : lost_lengths);
    if (length >= kLength) continue;
    const std::vector<float> logits = DecodeTo(kLength);
    EXPECT_EQ(std::memcmp(logits.data(), reference.data(), logits.size() * sizeof(float)), 0) << length;
  }
  EXPECT_GT(kept_lengths, 2);
  EXPECT_GT(lost_lengths, 2);
}

}  // namespace
}  // namespace outrider
