// StepSplit, which says how libllama cuts a batch, against what libllama computes: a callback sees the rows of every
// part.
#include <ggml-backend.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <random>
#include <string_view>

#include "engine/llama/llama_model.h"
#include "engine/step_split.h"

namespace outrider {
namespace {

constexpr int kSequences = 6;

// Sees the rows of each part: those of the product of token embeddings.
bool SeeNode(ggml_tensor* node, bool ask, void* user_data) {
  const bool embeds = node->op == GGML_OP_GET_ROWS && node->src[0] != nullptr &&
                      std::string_view(node->src[0]->name) == "token_embd.weight";
  if (ask) return embeds;
  static_cast<std::vector<int>*>(user_data)->push_back(static_cast<int>(node->ne[1]));
  return true;
}

struct ContextShape {
  const char* model;
  uint32_t micro_batch;
  bool shared_memory;
  uint32_t snapshots;
};

class LayoutTest : public testing::TestWithParam<ContextShape> {};

TEST_P(LayoutTest, IsWhatLibllamaComputes) {
  const ContextShape& shape = GetParam();
  ModelOptions options;
  options.path = std::string(OUTRIDER_MODELS_DIR) + "/" + shape.model;
  auto model = LlamaModel::Load(options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::vector<int> computed;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 512 * kSequences;
  params.n_batch = 512;
  params.n_ubatch = shape.micro_batch;
  params.n_seq_max = kSequences;
  params.n_outputs_max = 512;
  params.n_rs_seq = shape.snapshots;
  params.n_threads = params.n_threads_batch = 2;
  params.kv_unified = shape.shared_memory;
  params.cb_eval = SeeNode;
  params.cb_eval_user_data = &computed;
  const std::unique_ptr<llama_context, void (*)(llama_context*)> context(
      llama_init_from_model((*model)->handle(), params), llama_free);
  ASSERT_NE(context, nullptr);

  StepSplit split(static_cast<int>(shape.micro_batch), shape.shared_memory,
                  shape.snapshots > 0 ? static_cast<int>(shape.snapshots) + 1 : 0);
  std::mt19937 random(5);
  std::vector<Pos> lengths(kSequences, 0);
  for (int i = 0; i < 60; ++i) {
    llama_batch batch = llama_batch_init(512, 0, 1);
    std::vector<SequenceRows> step;
    for (SeqId seq = 0; seq < kSequences; ++seq) {
      if (random() % 3 == 0) continue;
      const int rows = random() % 2 == 0 ? 1 + static_cast<int>(random() % 3) : 1 + static_cast<int>(random() % 24);
      if (lengths[static_cast<size_t>(seq)] + rows > 500) continue;
      step.push_back({seq, rows});
      for (int row = 0; row < rows; ++row) {
        const int at = batch.n_tokens++;
        batch.token[at] = 100 + row;
        batch.pos[at] = lengths[static_cast<size_t>(seq)]++;
        batch.n_seq_id[at] = 1;
        batch.seq_id[at][0] = seq;
        batch.logits[at] = row == rows - 1 ? 1 : 0;
      }
    }
    if (!step.empty()) {
      computed.clear();
      ASSERT_EQ(llama_decode(context.get(), batch), 0);
      std::vector<int> expected;
      for (const StepSplit::Part& part : split.Cut(step)) expected.push_back(RowsOf(part));
      std::string rows;
      for (const SequenceRows& sequence : step)
        rows += std::to_string(sequence.seq) + ":" + std::to_string(sequence.rows) + " ";
      EXPECT_EQ(expected, computed) << rows;
    }
    llama_batch_free(batch);
  }
}

INSTANTIATE_TEST_SUITE_P(Contexts, LayoutTest,
                         testing::Values(ContextShape{"smollm2-draft-16m.gguf", 512, false, 0},
                                         ContextShape{"smollm2-draft-16m.gguf", 16, false, 0},
                                         ContextShape{"smollm2-draft-16m.gguf", 16, true, 0},
                                         ContextShape{"smollm2-hybrid-19m.gguf", 512, false, 0},
                                         ContextShape{"smollm2-hybrid-19m.gguf", 16, false, 0},
                                         ContextShape{"smollm2-hybrid-19m.gguf", 512, false, 8},
                                         ContextShape{"smollm2-hybrid-19m.gguf", 16, false, 4}));

}  // namespace
}  // namespace outrider
