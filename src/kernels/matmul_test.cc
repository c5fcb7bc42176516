#include <gtest/gtest.h>
#ifndef OUTRIDER_NO_PROPERTY_TESTS
#include <rapidcheck/gtest.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string_view>

#include "kernels/kernel_set.h"
#include "kernels/layout.h"
#include "kernels/operation.h"
#include "kernels/plugin.h"

namespace outrider::kernels {
namespace {

constexpr std::span<const ggml_type> kTypes = kTypesWithLayout;

std::vector<std::string> Sets() {
  std::vector<std::string> names;
  for (const KernelSet* const* set = KernelSetsOfThisCpu(); *set != nullptr; ++set) names.emplace_back((*set)->name);
  return names;
}

// Everything twice or more: for each instruction set this CPU can run.
class MatmulTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Install();
    ASSERT_TRUE(UseInstructionSet(GetParam()));
  }
  void TearDown() override { UseInstructionSet(""); }
};

// Types with grids are slow to quantise, and quantised values would not have all bit patterns. Their blocks begin with
// a scale of half precision.
std::vector<uint8_t> WeightsOf(ggml_type type, const std::vector<float>& values, int64_t row_values) {
  static constexpr ggml_type kWithGrids[] = {GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS,
                                             GGML_TYPE_IQ3_S};
  if (std::ranges::count(kWithGrids, type) == 0) return Quantized(type, values, row_values);
  const auto scale = [&values](size_t block) { return ggml_fp32_to_fp16(values[block * 256] / 256); };
  std::vector<uint8_t> bytes(ggml_row_size(type, static_cast<int64_t>(values.size())));
  std::mt19937 random(static_cast<unsigned>(values.size()) + std::bit_cast<unsigned>(values[0]));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  for (size_t block = 0; block < values.size() / 256; ++block) {
    const ggml_fp16_t d = scale(block);
    std::memcpy(bytes.data() + block * ggml_type_size(type), &d, sizeof d);
  }
  return bytes;
}

struct Case {
  ggml_type type;
  int64_t row_values, rows;
  std::vector<uint8_t> weights;

  Case(ggml_type of_type, int64_t n_row_values, int64_t n_rows, unsigned seed = 1, float scale = 0.05f)
      : type(of_type),
        row_values(n_row_values),
        rows(n_rows),
        weights(WeightsOf(type, RandomFloats(static_cast<size_t>(row_values * rows), seed, scale), row_values)) {}

  std::vector<float> Ours(const std::vector<float>& x, int threads = 1) const {
    return MultiplyIn(BufferType(), type, weights, row_values, rows, x, threads);
  }
  std::vector<float> Ggml(const std::vector<float>& x) const {
    return MultiplyIn(GgmlBufferType(type, row_values, rows), type, weights, row_values, rows, x);
  }
  std::vector<double> Exact(const std::vector<float>& x) const {
    const std::vector<float> w = Dequantized(type, weights, row_values * rows);
    const auto columns = static_cast<int64_t>(x.size()) / row_values;
    std::vector<double> result;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < row_values; ++i) {
          sum += static_cast<double>(w[static_cast<size_t>(r * row_values + i)]) *
                 x[static_cast<size_t>(c * row_values + i)];
        }
        result.push_back(sum);
      }
    }
    return result;
  }
};

double SquaredError(const std::vector<float>& values, const std::vector<double>& exact) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) error += (values[i] - exact[i]) * (values[i] - exact[i]);
  return error;
}

// What the rounding of float sums alone may make of it, for weights that are floats: 1e-7 of the size of the result.
double Rounding(const std::vector<double>& exact) {
  return 1e-14 * std::inner_product(exact.begin(), exact.end(), exact.begin(), 0.0);
}

bool SameBits(const float* a, const float* b, size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

TEST(KernelSetTest, HasKernelsForEveryTypeWithALayout) {
  EXPECT_GE(kTypes.size(), 7u);
  for (const KernelSet* const* set = KernelSetsOfThisCpu(); *set != nullptr; ++set) {
    EXPECT_EQ((*set)->n_matmul, static_cast<int>(kTypes.size())) << (*set)->name;
    for (const ggml_type type : kTypes) EXPECT_NE((*set)->ForType(type), nullptr) << ggml_type_name(type);
  }
}

TEST_P(MatmulTest, IsAsCloseToTheExactProductAsGgml) {
  for (ggml_type type : kTypes) {
    for (const auto& [row_values, rows] :
         std::vector<std::pair<int64_t, int64_t>>{{256, 16}, {768, 48}, {512, 37}, {2816, 128}}) {
      const Case product(type, row_values, rows);
      const std::vector<float> x = RandomFloats(static_cast<size_t>(7 * row_values), 2);
      const std::vector<double> exact = product.Exact(x);
      EXPECT_LE(SquaredError(product.Ours(x), exact), 1.02 * SquaredError(product.Ggml(x), exact) + Rounding(exact))
          << ggml_type_name(type) << " " << row_values << "x" << rows;
    }
  }
}

TEST_P(MatmulTest, AColumnDoesNotDependOnTheOthersNorOnThreads) {
  for (ggml_type type : kTypes) {
    const Case product(type, 512, 91);
    const std::vector<float> x = RandomFloats(64 * 512, 3);
    std::vector<float> alone;
    for (size_t c = 0; c < 64; ++c) {
      const auto first = x.begin() + static_cast<ptrdiff_t>(c * 512);
      const std::vector<float> y = product.Ours({first, first + 512});
      alone.insert(alone.end(), y.begin(), y.end());
    }
    for (size_t columns = 1; columns <= 64; ++columns) {
      for (int threads : {1, 2}) {
        const std::vector<float> y =
            product.Ours({x.begin(), x.begin() + static_cast<ptrdiff_t>(columns * 512)}, threads);
        ASSERT_TRUE(SameBits(y.data(), alone.data(), y.size()))
            << ggml_type_name(type) << " with " << columns << " columns, " << threads << " threads";
      }
    }
  }
}

// So choosing kernels does not change a text. On ARM ggml sums other types than Q4_0 in another order.
#if defined(__x86_64__)
const std::vector<ggml_type> kGgmlsChains = {GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL, GGML_TYPE_Q4_K};
#else
const std::vector<ggml_type> kGgmlsChains = {GGML_TYPE_Q4_0};
#endif
// Where ggml puts weights that it reorders; null if it reorders none. (On a CPU with AMX it prefers another place,
// whose kernels add up in another order.)
ggml_backend_buffer_type_t ReorderedByGgml() {
  const auto list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_cpu_reg(), "ggml_backend_dev_get_extra_bufts"));
  for (ggml_backend_buffer_type_t* type = list(ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0)); *type; ++type) {
    if (std::string_view(ggml_backend_buft_name(*type)) == "CPU_REPACK") return *type;
  }
  return nullptr;
}

TEST_P(MatmulTest, EqualsGgmlToTheBitWhereItsChainOfSumsIsTheSame) {
  for (ggml_type type : kGgmlsChains) {
    if (GgmlBufferType(type, 1536, 64) == ggml_backend_cpu_buffer_type()) continue;  // ggml does not reorder here
    const Case product(type, 1536, 64);
    const std::vector<float> x = RandomFloats(3 * 1536, 4);
    const std::vector<float> ours = product.Ours(x);
    const std::vector<float> ggml = MultiplyIn(ReorderedByGgml(), type, product.weights, 1536, 64, x);
    EXPECT_TRUE(SameBits(ours.data(), ggml.data(), ours.size())) << ggml_type_name(type);
  }
}

TEST_P(MatmulTest, TakesZerosAndExtremes) {
  for (ggml_type type : kTypes) {
    for (const float scale : {0.0f, 1e-30f, 1e-38f, 1e4f}) {
      const Case product(type, 256, 16, 5, 100.0f);
      const std::vector<float> x = RandomFloats(2 * 256, 6, scale);
      const std::vector<float> ours = product.Ours(x);
      const std::vector<double> exact = product.Exact(x);
      const double own = SquaredError(ours, exact), ggml = SquaredError(product.Ggml(x), exact);
      EXPECT_TRUE(std::isfinite(own)) << ggml_type_name(type) << " x " << scale;
      // Where ggml's half-precision sums overflow, ours do not.
      EXPECT_TRUE(std::isnan(ggml) || own <= 1.1 * ggml + Rounding(exact) + 1e-30)
          << ggml_type_name(type) << " x " << scale;
    }
  }
}

#if defined(__x86_64__)
// A tie between the largest positive and negative value decides the sign of the scale.
TEST_P(MatmulTest, QuantisesTiesAsGgmlDoes) {
  const Case product(GGML_TYPE_Q4_K, 256, 16);
  for (const float first : {2.0f, -2.0f}) {
    std::vector<float> x = RandomFloats(256, 7, 0.3f);
    x[40] = first;
    x[200] = -first;
    const std::vector<float> ours = product.Ours(x), ggml = product.Ggml(x);
    EXPECT_TRUE(SameBits(ours.data(), ggml.data(), ours.size()));
  }
}
#endif

#ifndef OUTRIDER_NO_PROPERTY_TESTS
RC_GTEST_PROP(MatmulShapes, AnyShapeIsComputedByRowAndColumnAlone, ()) {
  Install();
  const auto sets = Sets();
  RC_PRE(!sets.empty());
  UseInstructionSet(sets[*rc::gen::inRange<size_t>(0, sets.size())]);
  const ggml_type type = kTypes[*rc::gen::inRange<size_t>(0, std::size(kTypes))];
  const int64_t row_values = BlockValues(type) * *rc::gen::inRange<int64_t>(1, 9);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 190), columns = *rc::gen::inRange<int64_t>(1, 70);
  const int threads = *rc::gen::inRange(1, 4);
  const Case product(type, row_values, rows, *rc::gen::arbitrary<unsigned>());
  const std::vector<float> x = RandomFloats(static_cast<size_t>(columns * row_values), *rc::gen::arbitrary<unsigned>());
  const std::vector<float> all = product.Ours(x, threads);
  const auto column = *rc::gen::inRange<int64_t>(0, columns);
  const auto first = x.begin() + column * row_values;
  const std::vector<float> one = product.Ours({first, first + row_values});
  RC_ASSERT(SameBits(one.data(), all.data() + column * rows, one.size()));
  const std::vector<double> exact = product.Exact(x);
  const double size = std::sqrt(std::inner_product(exact.begin(), exact.end(), exact.begin(), 0.0));
  RC_ASSERT(std::sqrt(SquaredError(all, exact)) <= 0.02 * size);
  UseInstructionSet("");
}
#endif

// A mixture: each token goes to some experts, whose rows are those of a plain product with their matrix.
TEST_P(MatmulTest, ExpertsGiveTheRowsOfTheirMatrices) {
  constexpr int64_t kExperts = 5, kUsed = 2, kTokens = 19, kIn = 256, kOut = 40;
  for (ggml_type type : kTypes) {
    for (const bool own_input : {false, true}) {  // each expert of a token its own input, or all the same
      const int64_t inputs = own_input ? kUsed : 1;
      const std::vector<uint8_t> weights = WeightsOf(type, RandomFloats(kExperts * kOut * kIn, 8), kIn);
      const std::vector<float> x = RandomFloats(static_cast<size_t>(kTokens * inputs * kIn), 9);
      // As models have them: the first of the experts in order of preference, so with gaps between tokens.
      std::vector<int32_t> ids, order;
      for (int32_t token = 0; token < kTokens; ++token) {
        for (int32_t i = 0; i < kExperts; ++i)
          order.push_back((token * 7 + i) % (kExperts - 1));  // the last gets nothing
        ids.insert(ids.end(), order.end() - kExperts, order.end() - kExperts + kUsed);
      }
      Operation operation(2);
      ggml_context* context = operation.context();
      ggml_tensor* w = ggml_new_tensor_3d(context, type, kIn, kOut, kExperts);
      ggml_tensor* in = ggml_new_tensor_3d(context, GGML_TYPE_F32, kIn, inputs, kTokens);
      ggml_tensor* preferred = ggml_new_tensor_2d(context, GGML_TYPE_I32, kExperts, kTokens);
      operation.Place(w, BufferType(), weights.data());
      operation.Place(in, x.data());
      operation.Place(preferred, order.data());
      ggml_tensor* chosen = ggml_view_2d(context, preferred, kUsed, kTokens, preferred->nb[1], 0);
      operation.SetResult(ggml_mul_mat_id(context, w, in, chosen));
      const std::vector<float> y = operation.Result();
      const size_t expert_bytes = weights.size() / kExperts;
      for (int64_t token = 0; token < kTokens; ++token) {
        for (int64_t slot = 0; slot < kUsed; ++slot) {
          const auto first = x.begin() + (token * inputs + slot % inputs) * kIn;
          const auto matrix =
              weights.begin() + ids[static_cast<size_t>(token * kUsed + slot)] * static_cast<ptrdiff_t>(expert_bytes);
          const std::vector<float> alone =
              MultiplyIn(BufferType(), type, {matrix, matrix + static_cast<ptrdiff_t>(expert_bytes)}, kIn, kOut,
                         {first, first + kIn});
          ASSERT_TRUE(SameBits(alone.data(), y.data() + (token * kUsed + slot) * kOut, kOut)) << ggml_type_name(type);
        }
      }
    }
  }
}

// Columns of several planes, with gaps between them; a matrix for each plane, or one for all.
TEST_P(MatmulTest, ColumnsMayLieAnywhereAndHaveMatricesOfTheirOwn) {
  constexpr int64_t kIn = 256, kOut = 50, kColumns = 5, kPlanes = 4, kStreams = 3;
  for (ggml_type type : kTypes) {
    for (const int64_t matrices : {1, 2, 4}) {
      const std::vector<uint8_t> weights =
          WeightsOf(type, RandomFloats(static_cast<size_t>(matrices * kOut * kIn), 8), kIn);
      const std::vector<float> x = RandomFloats(2 * kIn * kColumns * kPlanes * kStreams, 9);
      Operation operation(2);
      ggml_context* context = operation.context();
      ggml_tensor* w = ggml_new_tensor_3d(context, type, kIn, kOut, matrices);
      ggml_tensor* wide = ggml_new_tensor_4d(context, GGML_TYPE_F32, 2 * kIn, kColumns, kPlanes, kStreams);
      operation.Place(w, BufferType(), weights.data());
      operation.Place(wide, x.data());
      ggml_tensor* in = ggml_view_4d(context, wide, kIn, kColumns, kPlanes, kStreams, wide->nb[1], wide->nb[2],
                                     wide->nb[3], kIn * sizeof(float));
      operation.SetResult(ggml_mul_mat(context, w, in));
      const std::vector<float> y = operation.Result();
      const auto matrix_bytes = static_cast<ptrdiff_t>(weights.size()) / matrices;
      for (int64_t plane = 0; plane < kPlanes * kStreams; ++plane) {
        const auto matrix = weights.begin() + plane % kPlanes / (kPlanes / matrices) * matrix_bytes;
        for (int64_t column = 0; column < kColumns; ++column) {
          const auto first = x.begin() + (plane * kColumns + column) * 2 * kIn + kIn;
          const std::vector<float> alone =
              MultiplyIn(BufferType(), type, {matrix, matrix + matrix_bytes}, kIn, kOut, {first, first + kIn});
          ASSERT_TRUE(SameBits(alone.data(), y.data() + (plane * kColumns + column) * kOut, kOut))
              << ggml_type_name(type) << ", " << matrices << " matrices, plane " << plane;
        }
      }
    }
  }
}

// No quantiser of ggml's makes it, but a file may have it.
TEST_P(MatmulTest, Q8WeightsOfMinus128KeepTheirSign) {
  Case product(GGML_TYPE_Q8_0, 32, 16);
  for (size_t row = 0; row < 16; ++row)
    std::fill_n(product.weights.begin() + static_cast<ptrdiff_t>(row * 34 + 2), 32, 0x80);
  std::vector<float> x(32, -1.0f);
  x[3] = 1.0f;
  const std::vector<float> ours = product.Ours(x);
  const std::vector<double> exact = product.Exact(x);
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], exact[i], 1e-3 * std::fabs(exact[i]));
}

INSTANTIATE_TEST_SUITE_P(AllSets, MatmulTest, testing::ValuesIn(Sets()), [](const auto& set) {
  std::string name = set.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatmulTest);

}  // namespace
}  // namespace outrider::kernels
