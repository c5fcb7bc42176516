// Files of adapters (LoRA), written for tests: random, but strong enough to change what the model says.
#pragma once

#include <ggml.h>
#include <gguf.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/free_with.h"
#include "engine/llama/width_probe.h"

namespace outrider {

struct AdapterRecipe {
  int64_t rank = 8;
  ggml_type type = GGML_TYPE_F16;
  float alpha = 16;  // 0 = not in the file
  unsigned seed = 1;
  std::string architecture = "llama";
  // Which weights are changed; a weight may have another rank.
  std::function<int64_t(const std::string& weight, int64_t usual)> rank_of = [](const std::string&, int64_t usual) {
    return usual;
  };
  std::function<void(gguf_context*)> change = nullptr;  // the metadata, at the end
};

inline std::vector<uint8_t> RandomValues(ggml_type type, int64_t row, int64_t rows, float deviation,
                                         std::mt19937& random) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<size_t>(row * rows));
  for (float& value : values) value = normal(random);
  std::vector<uint8_t> bytes(ggml_row_size(type, row) * static_cast<size_t>(rows));
  if (type == GGML_TYPE_F32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row, nullptr);
  }
  return bytes;
}

// Changes the weights of attention and of feed-forward networks of the model in `model_path`.
inline void WriteAdapter(const std::string& model_path, const std::string& path, const AdapterRecipe& recipe) {
  std::unique_ptr<gguf_context, FreeWith<gguf_free>> file(gguf_init_empty());
  gguf_set_val_str(file.get(), "general.architecture", recipe.architecture.c_str());
  gguf_set_val_str(file.get(), "general.type", "adapter");
  gguf_set_val_str(file.get(), "adapter.type", "lora");
  if (recipe.alpha != 0) gguf_set_val_f32(file.get(), "adapter.lora.alpha", recipe.alpha);
  std::unique_ptr<ggml_context, FreeWith<ggml_free>> context(
      ggml_init({size_t{4096} * ggml_tensor_overhead(), nullptr, true}));
  std::vector<std::vector<uint8_t>> data;
  std::mt19937 random(recipe.seed);
  for (const auto& [name, shape] : WeightShapes(model_path)) {
    const bool changed = name.find("attn_q.") != name.npos || name.find("attn_v.") != name.npos ||
                         name.find("ffn_down.") != name.npos || name.find("attn_output.") != name.npos;
    const int64_t rank = changed ? recipe.rank_of(name, recipe.rank) : 0;
    if (rank == 0) continue;
    const auto add = [&](const char* part, int64_t row, int64_t rows) {
      ggml_tensor* tensor = ggml_new_tensor_2d(context.get(), recipe.type, row, rows);
      ggml_set_name(tensor, (name + part).c_str());
      data.push_back(RandomValues(recipe.type, row, rows, 0.6f / std::sqrt(static_cast<float>(row)), random));
      tensor->data = data.back().data();
      gguf_add_tensor(file.get(), tensor);
    };
    add(".lora_a", shape[0], rank);
    add(".lora_b", rank, shape[1]);
  }
  if (recipe.change) recipe.change(file.get());
  gguf_write_to_file(file.get(), path.c_str(), /*only_meta=*/false);
}

}  // namespace outrider
