// What the plug-in tells llama.cpp's loader and ggml's scheduler.
#include "kernels/plugin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/operation.h"

namespace outrider::kernels {
namespace {

class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    if (InstructionSet().empty()) GTEST_SKIP() << "no kernels for this CPU";
    Install();
  }

  // As the loader asks: with an empty buffer of our type.
  bool Takes(ggml_op op, ggml_type type, int64_t row_values, int64_t rows, int64_t matrices = 1) {
    Operation operation;
    ggml_context* context = operation.context();
    ggml_tensor* w = ggml_new_tensor_3d(context, type, row_values, rows, matrices);
    ggml_tensor* result = nullptr;
    if (op == GGML_OP_MUL_MAT) {
      result = ggml_mul_mat(context, w, ggml_new_tensor_3d(context, GGML_TYPE_F32, row_values, 4, matrices));
    } else if (op == GGML_OP_MUL_MAT_ID) {
      result = ggml_mul_mat_id(context, w, ggml_new_tensor_3d(context, GGML_TYPE_F32, row_values, 1, 4),
                               ggml_new_tensor_2d(context, GGML_TYPE_I32, 1, 4));
    } else {
      result = ggml_get_rows(context, w, ggml_new_tensor_1d(context, GGML_TYPE_I32, 4));
    }
    ggml_backend_buffer_t empty = ggml_backend_buft_alloc_buffer(BufferType(), 0);
    w->buffer = empty;
    const bool takes = ggml_backend_dev_supports_op(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), result);
    ggml_backend_buffer_free(empty);
    return takes;
  }
};

TEST_F(PluginTest, TakesWeightsOnlyWhileAskedTo) {
  EXPECT_FALSE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q4_0, 256, 64));
  {
    const ggml_type types[] = {GGML_TYPE_Q4_0};
    const TakeWeights take(types, {});
    EXPECT_TRUE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q4_0, 256, 64));
    EXPECT_TRUE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q4_0, 256, 64, 3));
    EXPECT_TRUE(Takes(GGML_OP_MUL_MAT_ID, GGML_TYPE_Q4_0, 256, 64, 3));
    EXPECT_FALSE(Takes(GGML_OP_GET_ROWS, GGML_TYPE_Q4_0, 256, 64)) << "embeddings are read row by row";
    EXPECT_TRUE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q4_0, 256, 24)) << "the last tile is half empty";
    EXPECT_FALSE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q8_0, 256, 64)) << "another type";
  }
  EXPECT_FALSE(Takes(GGML_OP_MUL_MAT, GGML_TYPE_Q4_0, 256, 64));
}

// Types that ggml must not reorder.
TEST_F(PluginTest, KeepsSomeWeightsAsTheyAre) {
  const ggml_type ours[] = {GGML_TYPE_Q4_0}, plain[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q8_0};
  const TakeWeights take(ours, plain);
  for (const auto& [type, rows] : std::vector<std::pair<ggml_type, int64_t>>{
           {GGML_TYPE_Q4_0, 64}, {GGML_TYPE_Q4_0, 24}, {GGML_TYPE_Q8_0, 64}, {GGML_TYPE_Q8_0, 24}}) {
    EXPECT_TRUE(Takes(GGML_OP_MUL_MAT, type, 256, rows));
    const std::vector<uint8_t> weights = Quantized(type, RandomFloats(static_cast<size_t>(256 * rows), 1), 256);
    const std::vector<float> x = RandomFloats(3 * 256, 2);
    const std::vector<float> held = MultiplyIn(BufferType(), type, weights, 256, rows, x);
    const std::vector<float> expected = MultiplyIn(ggml_backend_cpu_buffer_type(), type, weights, 256, rows, x);
    const bool in_tiles = type == GGML_TYPE_Q4_0;
    for (size_t i = 0; i < held.size(); ++i) ASSERT_NEAR(held[i], expected[i], 1e-3) << ggml_type_name(type) << rows;
    if (!in_tiles) {
      EXPECT_EQ(0, std::memcmp(held.data(), expected.data(), held.size() * sizeof(float)));
    }
  }
}

TEST_F(PluginTest, AttentionIsOneChoiceWhileSomebodyHoldsIt) {
  EXPECT_FALSE(AttentionIsHeld());
  EXPECT_FALSE(AttentionIsOurs());
  auto first = AttentionHold::Take(true);
  auto second = AttentionHold::Take(true);
  EXPECT_TRUE(AttentionIsOurs());
  EXPECT_EQ(AttentionHold::Take(false), nullptr);
  first.reset();
  EXPECT_TRUE(AttentionIsOurs());
  second.reset();
  EXPECT_FALSE(AttentionIsOurs());
  EXPECT_NE(AttentionHold::Take(false), nullptr);
}

TEST(InstructionSetTest, OnlyThoseOfThisCpuCanBeUsed) {
  EXPECT_FALSE(UseInstructionSet("sse42"));
  EXPECT_TRUE(UseInstructionSet(""));
}

}  // namespace
}  // namespace outrider::kernels
