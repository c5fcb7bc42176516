// Adapters on the real library: with any of them a row's logits are the same to the bit, whatever is computed beside
// it, and what an adapter computes is W + scale · alpha / rank · B · A, whatever layout its weights lie in.
#include "engine/llama/llama_adapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/llama/adapter_test_util.h"
#include "engine/llama/adapter_tiles.h"
#include "engine/llama/llama_engine.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

const std::string kModel = std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf";
const std::string kHybrid = std::string(OUTRIDER_MODELS_DIR) + "/smollm2-hybrid-19m.gguf";

std::string PathOf(const std::string& name) {
  return testing::TempDir() + "adapter_" + std::to_string(getpid()) + "_" + name + ".gguf";
}

std::string Written(const std::string& name, const AdapterRecipe& recipe, const std::string& model = kModel) {
  WriteAdapter(model, PathOf(name), recipe);
  return PathOf(name);
}

Result<std::shared_ptr<LlamaModel>> Load(const std::vector<std::string>& adapters, Kernels kernels = Kernels::kOutrider,
                                         const std::string& model = kModel) {
  ModelOptions options;
  options.path = model;
  options.kernels = kernels;
  options.adapters = adapters;
  return LlamaModel::Load(options);
}

std::unique_ptr<LlamaEngine> MakeEngine(const std::shared_ptr<LlamaModel>& model, int sequences = 4) {
  ContextOptions options;
  options.n_sequences = sequences;
  options.context_tokens = 1024 * sequences;
  options.threads = 2;
  auto engine = LlamaEngine::Create(model, options);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(*engine);
}

std::vector<Token> Text(const LlamaModel& model, size_t tokens) {
  std::string text;
  while (text.size() < tokens * 8) text += "The lighthouse keeper wrote down the weather every morning: wind and sea. ";
  auto all = model.tokenizer().Tokenize(text, true, SpecialTokens::kAsText);
  all.resize(tokens);
  return all;
}

using Rows = std::vector<std::vector<float>>;

// Logits of all rows from `first` on, decoded in slices of so many rows.
Rows LogitsOf(Engine& engine, SeqId seq, const AdapterSet& adapters, const std::vector<Token>& tokens, size_t first,
              Pos slice) {
  Rows rows;
  engine.TruncateTo(seq, 0);
  for (Pos begin = 0; begin < static_cast<Pos>(tokens.size());) {
    Batch batch;
    batch.Clear(adapters);
    const Pos border = begin < static_cast<Pos>(first) ? static_cast<Pos>(first) : static_cast<Pos>(tokens.size());
    const Pos end = std::min(begin + slice, border);
    for (Pos pos = begin; pos < end; ++pos)
      batch.Add({tokens[static_cast<size_t>(pos)], pos, seq, pos >= static_cast<Pos>(first)});
    const Status status = engine.Decode(batch);
    EXPECT_TRUE(status.ok()) << status.message();
    for (int row = 0; begin >= static_cast<Pos>(first) && row < batch.size(); ++row) {
      rows.emplace_back(engine.Logits(row).begin(), engine.Logits(row).end());
    }
    begin = end;
  }
  return rows;
}

double LargestDifference(const Rows& a, const Rows& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) largest = std::max<double>(largest, std::abs(a[i][j] - b[i][j]));
  }
  return largest;
}

struct Kind {
  int64_t rank;
  ggml_type type;
};

class LlamaAdapterTest : public testing::TestWithParam<Kind> {};

TEST_P(LlamaAdapterTest, RowsDoNotDependOnTheRowsBesideThem) {
  const std::string path = Written(
      "rows", {.rank = GetParam().rank, .type = GetParam().type, .alpha = 2 * static_cast<float>(GetParam().rank)});
  auto model = Load({path});
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto engine = MakeEngine(*model);
  EXPECT_EQ(engine->info().exactness, "");
  EXPECT_EQ(engine->info().n_adapters, 1);
  EXPECT_TRUE(TypesNotInTiles(*(*model)->adapters()[0].handle).empty());
  const auto tokens = Text(**model, 72);
  const AdapterSet adapters = {{0, 1}};
  const Rows alone = LogitsOf(*engine, 0, adapters, tokens, 40, 1);
  EXPECT_GT(LargestDifference(alone, LogitsOf(*engine, 0, {}, tokens, 40, 1)), 1) << "the adapter hardly matters";
  for (const Pos width : {2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32}) {
    EXPECT_EQ(LogitsOf(*engine, 0, adapters, tokens, 40, width), alone) << width << " rows at once";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LlamaAdapterTest,
                         testing::Values(Kind{1, GGML_TYPE_F32}, Kind{8, GGML_TYPE_F16}, Kind{16, GGML_TYPE_F32},
                                         Kind{24, GGML_TYPE_F16}, Kind{32, GGML_TYPE_BF16}, Kind{64, GGML_TYPE_F16},
                                         Kind{32, GGML_TYPE_Q8_0}, Kind{64, GGML_TYPE_Q8_0}, Kind{64, GGML_TYPE_Q4_0}),
                         [](const auto& kind) {
                           return std::string(ggml_type_name(kind.param.type)) + "_" + std::to_string(kind.param.rank);
                         });

// ggml's kernels are the reference for what is computed, not for how it is rounded.
TEST(LlamaAdapterValuesTest, OurLayoutChangesNoProduct) {
  const auto every_other = [](const std::string& weight, int64_t rank) {
    return weight.find("attn_q") != weight.npos ? 4 * rank + 8 : rank;
  };
  const std::pair<const char*, AdapterRecipe> recipes[] = {
      {"usual", {.rank = 16}},
      {"no alpha", {.rank = 8, .alpha = 0}},
      {"several ranks", {.rank = 8, .alpha = 12, .rank_of = every_other}},
      {"several ranks, no alpha", {.rank = 8, .alpha = 0, .rank_of = every_other}},
  };
  for (const auto& [name, recipe] : recipes) {
    const std::string path = Written("values", recipe);
    const auto logits_with = [&](Kernels kernels, const AdapterSet& adapters) {  // a process has one kind of kernels
      auto model = Load({path}, kernels);
      EXPECT_TRUE(model.ok());
      EXPECT_EQ(TypesNotInTiles(*(*model)->adapters()[0].handle).empty(), kernels == Kernels::kOutrider) << name;
      return LogitsOf(*MakeEngine(*model), 0, adapters, Text(**model, 24), 0, 24);
    };
    const Rows without = logits_with(Kernels::kOutrider, {});
    for (const float scale : {1.0f, -0.5f}) {
      const AdapterSet adapters = {{0, scale}};
      const Rows ours = logits_with(Kernels::kOutrider, adapters), ggmls = logits_with(Kernels::kGgml, adapters);
      const double effect = LargestDifference(ours, without);
      EXPECT_GT(effect, 1) << name;
      EXPECT_LT(LargestDifference(ours, ggmls), effect / 10) << name << ", scale " << scale;
    }
  }
}

TEST(LlamaAdapterSetsTest, SequencesWithDifferentSetsTakeTurnsAndGetTheirOwn) {
  for (const std::string& file : {kModel, kHybrid}) {
    const std::string architecture = file == kModel ? "llama" : "lfm2";
    auto model = Load({Written("first", {.seed = 1, .architecture = architecture}, file),
                       Written("second", {.rank = 16, .seed = 2, .architecture = architecture}, file)},
                      Kernels::kOutrider, file);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto tokens = Text(**model, 40);
    const std::vector<AdapterSet> sets = {{}, {{0, 1}}, {{1, 0.5f}}, {{0, 1}, {1, 0.5f}}};
    std::vector<Rows> alone;
    for (const AdapterSet& set : sets) alone.push_back(LogitsOf(*MakeEngine(*model), 0, set, tokens, 0, 1));
    for (size_t i = 1; i < sets.size(); ++i) EXPECT_GT(LargestDifference(alone[i], alone[i - 1]), 0.5);

    auto engine = MakeEngine(*model);
    for (size_t at = 0; at < tokens.size(); ++at) {
      for (size_t i = 0; i < sets.size(); ++i) {
        Batch batch;
        batch.Clear(sets[i]);
        batch.Add({tokens[at], static_cast<Pos>(at), static_cast<SeqId>(i), true});
        ASSERT_TRUE(engine->Decode(batch).ok());
        const auto logits = engine->Logits(0);
        ASSERT_TRUE(std::equal(logits.begin(), logits.end(), alone[i][at].begin())) << "set " << i << ", row " << at;
      }
    }
  }
}

TEST(LlamaAdapterSetsTest, GgmlsKernelsAreNotTrusted) {
  auto model = Load({Written("ggml", {})}, Kernels::kGgml);
  ASSERT_TRUE(model.ok());
  const bool independent = RowsAreIndependent(GGML_TYPE_F16, WeightLayout::kPlain);
  EXPECT_EQ((*model)->exactness_caveat().find("adapter") != std::string::npos, !independent);
}

TEST(LlamaAdapterFilesTest, WhatDoesNotFitIsRefusedInOneSentence) {
  const auto reason = [](const std::string& path) {
    auto model = Load({path});
    EXPECT_FALSE(model.ok());
    const std::string message = model.status().message();
    EXPECT_EQ(message.find('\n'), message.npos);
    return message.substr(message.find("': ") == message.npos ? 0 : message.find("': ") + 3);
  };
  const auto changed = [&](std::function<void(gguf_context*)> change) {
    return reason(Written("changed", {.change = std::move(change)}));
  };
  EXPECT_EQ(reason(Written("arch", {.architecture = "qwen2"})),
            "it is for models of the architecture qwen2, but this one is llama");
  EXPECT_EQ(changed([](gguf_context* file) { gguf_set_val_str(file, "general.type", "model"); }),
            "it is not an adapter; llama.cpp's convert_lora_to_gguf.py makes GGUF files of LoRA adapters");
  EXPECT_EQ(changed([](gguf_context* file) { gguf_set_val_u32(file, "general.type", 1); }),
            "it is not an adapter; llama.cpp's convert_lora_to_gguf.py makes GGUF files of LoRA adapters");
  EXPECT_EQ(reason(kModel),
            "it is not an adapter; llama.cpp's convert_lora_to_gguf.py makes GGUF files of LoRA adapters");
  EXPECT_EQ(changed([](gguf_context* file) { gguf_set_val_str(file, "adapter.type", "control_vector"); }),
            "it is of the kind 'control_vector'; only LoRA adapters can be applied");
  EXPECT_EQ(changed([](gguf_context* file) { gguf_set_val_u32(file, "adapter.lora.alpha", 1); }),
            "its adapter.lora.alpha is not a float");
  EXPECT_EQ(changed([](gguf_context* file) {
              const uint32_t tokens[] = {1, 2};
              gguf_set_arr_data(file, "adapter.alora.invocation_tokens", GGUF_TYPE_UINT32, tokens, 2);
            }),
            "it is an activated LoRA, which changes the model only after certain tokens "
            "(adapter.alora.invocation_tokens); outrider applies an adapter to whole texts");
  EXPECT_EQ(reason(Written("empty", {.rank = 0})), "it changes no weight");
  EXPECT_NE(reason(Written("other", {}, kHybrid)).find("belongs to another model"), std::string::npos);
  EXPECT_EQ(reason(PathOf("missing")), "adapter file '" + PathOf("missing") + "' does not exist");
  std::ofstream(PathOf("text")) << "no GGUF";
  EXPECT_EQ(reason(PathOf("text")), "adapter '" + PathOf("text") + "' is not a GGUF file, or is damaged");
  const std::string cut = Written("cut", {});
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  EXPECT_EQ(reason(cut), "adapter '" + cut + "' is cut short or damaged: download it again");
}

TEST(LlamaAdapterFilesTest, FeedForwardWeightsOfTheTypeNvfp4AreRefused) {
  const std::string path = Written("nvfp4", {});
  AdapterTarget target{"llama", WeightShapes(kModel), WeightsOfType(kModel, GGML_TYPE_NVFP4)};
  EXPECT_TRUE(target.nvfp4.empty());
  EXPECT_TRUE(CheckAdapterFile(path, target).ok());
  target.nvfp4 = {"blk.0.attn_q.weight"};
  EXPECT_TRUE(CheckAdapterFile(path, target).ok());
  target.nvfp4 = {"blk.0.ffn_down.weight"};
  EXPECT_NE(CheckAdapterFile(path, target).message().find("NVFP4"), std::string::npos);
}

// libllama would abort the process when it builds a graph with one of these.
TEST(LlamaAdapterFilesTest, ShapesThatDoNotFitAreRefused) {
  struct Tensor {
    const char* name;
    std::vector<int64_t> shape;
    ggml_type type = GGML_TYPE_F32;
  };
  const auto reason = [](const std::vector<Tensor>& tensors) {
    const std::string path =
        Written("shapes", {.rank = 0, .change = [&](gguf_context* file) {
                             static std::vector<float> zeros(1 << 22);
                             ggml_context* context = ggml_init({size_t{64} * ggml_tensor_overhead(), nullptr, true});
                             for (const Tensor& each : tensors) {
                               ggml_tensor* tensor = ggml_new_tensor(
                                   context, each.type, static_cast<int>(each.shape.size()), each.shape.data());
                               ggml_set_name(tensor, each.name);
                               tensor->data = zeros.data();
                               gguf_add_tensor(file, tensor);
                             }
                             ggml_free(context);
                           }});
    auto model = Load({path});
    EXPECT_FALSE(model.ok());
    return model.status().message();
  };
  const auto has = [&](const char* words, const std::vector<Tensor>& tensors) {
    const std::string message = reason(tensors);
    EXPECT_NE(message.find(words), message.npos) << message;
  };
  const char *a = "blk.0.attn_q.weight.lora_a", *b = "blk.0.attn_q.weight.lora_b";
  has("one of its two parts is missing", {{a, {256, 8}}});
  has("has another shape than the model's", {{a, {128, 8}}, {b, {8, 256}}});
  has("has another shape than the model's", {{a, {256, 8}}, {b, {8, 128}}});
  has("has two parts that do not fit each other", {{a, {256, 8}}, {b, {16, 256}}});
  has("has another number of matrices", {{a, {256, 8, 2}}, {b, {8, 256, 2}}});
  has("is not a GGUF file", {{a, {256, 0}}, {b, {0, 256}}});
  has("has values of an unknown type", {{a, {256, 8}, GGML_TYPE_I32}, {b, {8, 256}}});
  has("has values of an unknown type", {{a, {256, 32}, GGML_TYPE_Q8_1}, {b, {32, 256}}});
  has("is no part of a LoRA adapter", {{"blk.0.attn_q.weight", {256, 256}}});
  has("the embeddings are also the output layer",
      {{"token_embd.weight.lora_a", {8, 49152}}, {"token_embd.weight.lora_b", {8, 256}}});
}

}  // namespace
}  // namespace outrider
