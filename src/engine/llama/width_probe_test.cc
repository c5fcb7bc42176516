#include "engine/llama/width_probe.h"

#include <gtest/gtest.h>

#include "engine/llama/backend.h"

namespace outrider {
namespace {

TEST(WidthProbeTest, ReadsTheTypesOfAFile) {
  const auto types = WeightTypes(std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf");
  EXPECT_EQ(types, (std::vector<WeightType>{{GGML_TYPE_Q8_0, true}, {GGML_TYPE_Q4_K, true}}));
  EXPECT_TRUE(WeightTypes("/nonexistent.gguf").empty());
}

// What the probe says differs from CPU to CPU; that it says the same twice does not. The engine's tests check that it
// is right.
TEST(WidthProbeTest, IsDeterministicForEveryCommonType) {
  ASSERT_TRUE(InitBackend().ok());
  for (ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
                         GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                         GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4}) {
    for (WeightLayout layout : {WeightLayout::kPlain, WeightLayout::kRepacked}) {
      const bool independent = RowsAreIndependent(type, layout);
      EXPECT_EQ(RowsAreIndependent(type, layout), independent) << ggml_type_name(type);
      RecordProperty(std::string(ggml_type_name(type)) + (layout == WeightLayout::kPlain ? "" : "_repacked"),
                     independent);
    }
  }
}

}  // namespace
}  // namespace outrider
