#include "engine/llama/llama_model.h"

#include <gtest/gtest.h>

#include <utility>

namespace outrider {
namespace {

TEST(LlamaModelTest, ParameterCountsReadAsModelsAreNamed) {
  const std::pair<uint64_t, const char*> expected[] = {
      {0, "0"},
      {999, "999"},
      {1'000, "1K"},
      {1'540, "1.5K"},
      {99'949, "99.9K"},
      {99'950, "100K"},
      {899'600, "900K"},
      {999'499, "999K"},
      {999'500, "1M"},
      {1'540'000, "1.5M"},
      {9'949'999, "9.9M"},
      {9'960'000, "10M"},
      {16'220'000, "16.2M"},
      {134'515'008, "135M"},
      {361'821'120, "362M"},
      {499'999'999, "500M"},
      {500'000'000, "0.5B"},
      {905'000'000, "0.9B"},
      {999'999'999, "1B"},
      {1'100'048'384, "1.1B"},
      {7'241'732'096, "7.2B"},
      {12'999'999'999, "13B"},
      {70'553'706'496, "70.6B"},
      {405'853'388'800, "406B"},
      {1'040'000'000'000, "1040B"},
  };
  for (const auto& [parameters, text] : expected) EXPECT_EQ(FormatParameterCount(parameters), text) << parameters;
}

// The number is that of the file's weights, not a guess from the number of layers.
TEST(LlamaModelTest, DescribesTheModelsOfThisRepository) {
  const auto describe = [](const char* name) {
    ModelOptions options;
    options.path = std::string(OUTRIDER_MODELS_DIR) + "/" + name;
    auto model = LlamaModel::Load(options);
    return model.ok() ? (*model)->Description() : model.status().message();
  };
  EXPECT_EQ(describe("smollm2-draft-16m.gguf"), "llama 16.5M Q8_0");
  EXPECT_EQ(describe("smollm2-hybrid-19m.gguf"), "lfm2 19.2M Q8_0");
}

}  // namespace
}  // namespace outrider
