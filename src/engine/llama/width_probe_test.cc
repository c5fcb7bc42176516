#include "engine/llama/width_probe.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "base/free_with.h"
#include "engine/llama/backend.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

TEST(WidthProbeTest, ReadsTheTypesOfAFile) {
  const auto types = WeightTypes(std::string(OUTRIDER_MODELS_DIR) + "/smollm2-draft-16m.gguf");
  EXPECT_EQ(types, (std::vector<WeightType>{{GGML_TYPE_Q8_0, true}, {GGML_TYPE_Q4_K, true}}));
  EXPECT_TRUE(WeightTypes("/nonexistent.gguf").empty());
}

// --- The comparison, with products whose flaws we choose

constexpr int64_t kInputs = 8;
constexpr int kOutputs = 4;

// A product without a flaw: a row's outputs are a function of that row alone.
std::vector<float> Independent(std::span<const float> input, int rows) {
  std::vector<float> result;
  for (int row = 0; row < rows; ++row) {
    for (int output = 0; output < kOutputs; ++output) {
      float sum = 0;
      for (int64_t i = 0; i < kInputs; ++i) {
        sum += input[static_cast<size_t>(row * kInputs + i)] * static_cast<float>(i + output);
      }
      result.push_back(sum);
    }
  }
  return result;
}

// The smallest change that a float can have.
void FlipLastBit(float& value) {
  value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ 1u);
}

TEST(WidthProbeTest, AcceptsAProductWhoseRowsDoNotDependOnEachOther) {
  EXPECT_TRUE(RowsAreIndependent(Independent, kInputs));
}

TEST(WidthProbeTest, SeesTheLastBitOfOneOutputAtOneWidth) {
  std::set<int> widths;
  ASSERT_TRUE(RowsAreIndependent(
      [&](std::span<const float> input, int rows) {
        widths.insert(rows);
        return Independent(input, rows);
      },
      kInputs));
  for (int rows = 1; rows <= 16; ++rows) EXPECT_TRUE(widths.contains(rows)) << rows << " rows were not tried";
  EXPECT_EQ(*widths.rbegin(), kMaxProbeRows);

  for (const int flawed : widths) {
    if (flawed == 1) continue;
    for (const int place : {0, flawed * kOutputs / 2, flawed * kOutputs - 1}) {
      const auto product = [&](std::span<const float> input, int rows) {
        std::vector<float> result = Independent(input, rows);
        if (rows == flawed) FlipLastBit(result[static_cast<size_t>(place)]);
        return result;
      };
      EXPECT_FALSE(RowsAreIndependent(product, kInputs)) << flawed << " rows, output " << place;
    }
  }
}

TEST(WidthProbeTest, SeesAProductForWhichOneRowIsTheException) {
  const auto product = [](std::span<const float> input, int rows) {
    std::vector<float> result = Independent(input, rows);
    if (rows == 1) FlipLastBit(result.front());
    return result;
  };
  EXPECT_FALSE(RowsAreIndependent(product, kInputs));
}

// --- ggml's products

using ContextPtr = std::unique_ptr<ggml_context, FreeWith<ggml_free>>;
using BufferPtr = std::unique_ptr<ggml_backend_buffer, FreeWith<ggml_backend_buffer_free>>;
using BackendPtr = std::unique_ptr<ggml_backend, FreeWith<ggml_backend_free>>;

// Where ggml may put weights that it reorders on this CPU.
std::vector<ggml_backend_buffer_type_t> ReorderedPlaces() {
  const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_cpu_reg(), "ggml_backend_dev_get_extra_bufts"));
  std::vector<ggml_backend_buffer_type_t> places;
  for (ggml_backend_buffer_type_t* type = list(ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0)); *type; ++type) {
    if (*type != kernels::BufferType()) places.push_back(*type);
  }
  return places;
}

// A second opinion on ggml's product: another matrix, another shape, other inputs.
class SecondProduct {
 public:
  static constexpr int64_t kInputs = 1024, kOutputs = 96;

  SecondProduct(ggml_type type, ggml_backend_buffer_type_t place)
      : backend_(ggml_backend_cpu_init()), context_(ggml_init({ggml_tensor_overhead() * 2, nullptr, true})) {
    ggml_backend_cpu_set_n_threads(backend_.get(), 1);
    weights_ = ggml_new_tensor_2d(context_.get(), type, kInputs, kOutputs);
    buffer_.reset(ggml_backend_buft_alloc_buffer(place, ggml_backend_buft_get_alloc_size(place, weights_)));
    ggml_backend_tensor_alloc(buffer_.get(), weights_, ggml_backend_buffer_get_base(buffer_.get()));
    if (!Supported()) return;
    const std::vector<float> importance(static_cast<size_t>(kInputs), 1.0f);
    const std::vector<float> values = Values(kInputs * kOutputs, 99);
    std::vector<uint8_t> packed(ggml_nbytes(weights_));
    ggml_quantize_chunk(type, values.data(), packed.data(), 0, kOutputs, kInputs, importance.data());
    ggml_backend_tensor_set(weights_, packed.data(), 0, packed.size());
  }

  // Whether ggml computes with weights of this type there.
  bool Supported() {
    ContextPtr context(ggml_init({ggml_tensor_overhead() * 4, nullptr, true}));
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kInputs, 1);
    return ggml_backend_supports_op(backend_.get(), ggml_mul_mat(context.get(), weights_, x));
  }

  static std::vector<float> Values(int64_t count, uint32_t seed) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      seed = seed * 747796405u + 2891336453u;
      value = static_cast<float>(static_cast<int32_t>(seed)) / static_cast<float>(1u << 31);
    }
    return values;
  }

  std::vector<float> Compute(std::span<const float> input, int rows) {
    ContextPtr context(ggml_init({ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, true}));
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kInputs, rows);
    ggml_tensor* y = ggml_mul_mat(context.get(), weights_, x);
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), 4, false);
    ggml_build_forward_expand(graph, y);
    BufferPtr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend_.get()));
    ggml_backend_tensor_set(x, input.data(), 0, ggml_nbytes(x));
    ggml_backend_graph_compute(backend_.get(), graph);
    std::vector<float> result(static_cast<size_t>(kOutputs * rows));
    ggml_backend_tensor_get(y, result.data(), 0, ggml_nbytes(y));
    return result;
  }

  bool RowsDepend() {
    for (const int rows : {2, 3, 4, 5, 6, 7, 8, 16, 32}) {
      if (!FirstRowIsTheSame(rows)) return true;
    }
    return false;
  }

 private:
  // Whether the first row has the same bits alone and as one of `rows`.
  bool FirstRowIsTheSame(int rows) {
    const std::vector<float> input = Values(kInputs * rows, 5);
    const std::vector<float> alone = Compute(std::span(input).first(static_cast<size_t>(kInputs)), 1);
    const std::vector<float> together = Compute(input, rows);
    return std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)) == 0;
  }

  BackendPtr backend_;
  ContextPtr context_;
  BufferPtr buffer_;
  ggml_tensor* weights_ = nullptr;
};

// Which types the probe finds independent differs from CPU to CPU, so they are not compared with a list. On every CPU
// the probe must give the same answer twice, an independent computation must find no difference where the probe found
// none, and some types must be found independent.
TEST(WidthProbeTest, AgreesWithAnotherComputationForEveryCommonType) {
  ASSERT_TRUE(InitBackend().ok());
  int independent_types = 0;
  for (ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
                         GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                         GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4}) {
    const std::string name = ggml_type_name(type);
    const bool plain = RowsAreIndependent(type, WeightLayout::kPlain);
    const bool repacked = RowsAreIndependent(type, WeightLayout::kRepacked);
    EXPECT_EQ(RowsAreIndependent(type, WeightLayout::kPlain), plain) << name;
    EXPECT_EQ(RowsAreIndependent(type, WeightLayout::kRepacked), repacked) << name;
    independent_types += plain;
    const bool plain_depends = SecondProduct(type, ggml_backend_cpu_buffer_type()).RowsDepend();
    EXPECT_FALSE(plain_depends && plain) << name;
    bool reordered = false, reordered_depends = false;
    for (ggml_backend_buffer_type_t place : ReorderedPlaces()) {
      SecondProduct second(type, place);
      if (!second.Supported()) continue;
      reordered = true;
      reordered_depends = reordered_depends || second.RowsDepend();
    }
    EXPECT_FALSE(reordered_depends && repacked) << name << ", reordered";
    EXPECT_TRUE(reordered || repacked == plain) << name << " stays as it is";
    std::printf("%-8s as in the file: %s, second opinion %s; %s: %s, second opinion %s\n", name.c_str(),
                plain ? "independent" : "dependent", plain_depends ? "dependent" : "independent",
                reordered ? "reordered" : "not reordered", repacked ? "independent" : "dependent",
                reordered_depends ? "dependent" : "independent");
  }
  EXPECT_GT(independent_types, 0) << "no CPU is known on which rows of all types depend on each other";
}

}  // namespace
}  // namespace outrider
