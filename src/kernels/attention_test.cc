#include <gtest/gtest.h>
#ifndef OUTRIDER_NO_PROPERTY_TESTS
#include <rapidcheck/gtest.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/kernel_set.h"
#include "kernels/operation.h"
#include "kernels/plugin.h"

namespace outrider::kernels {
namespace {

std::vector<std::string> Sets() {
  std::vector<std::string> names;
  for (const KernelSet* const* set = KernelSetsOfThisCpu(); *set != nullptr; ++set) names.emplace_back((*set)->name);
  return names;
}

// An attention operation: its inputs as floats, and who sees what.
struct Case {
  int64_t head_values = 64, heads = 6, shared_heads = 2, rows = 3, cells = 100, streams = 1;
  ggml_type type = GGML_TYPE_F16;
  float max_bias = 0.0f, softcap = 0.0f;
  bool sinks = false;
  bool as_models_do = false;  // heads of a cell beside each other, queries permuted, a mask with more rows than needed
  bool (*sees)(int64_t row, int64_t cell, const Case& c) = [](int64_t row, int64_t cell, const Case& c) {
    return cell <= c.cells - c.rows + row;
  };
  float bias(int64_t row, int64_t cell) const {
    return max_bias == 0.0f ? 0.0f : -std::fabs(static_cast<float>(cells - rows + row - cell));
  }

  unsigned seed = 1;
  std::vector<float> q{}, k{}, v{}, sink{};
  void Fill() {
    q = RandomFloats(static_cast<size_t>(head_values * rows * heads * streams), seed);
    k = RandomFloats(static_cast<size_t>(head_values * cells * shared_heads * streams), seed + 1);
    v = RandomFloats(static_cast<size_t>(head_values * cells * shared_heads * streams), seed + 2);
    sink = RandomFloats(static_cast<size_t>(heads), seed + 3);
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_values)); }

  std::vector<uint8_t> Stored(const std::vector<float>& values) const {
    std::vector<uint8_t> bytes(ggml_row_size(type, head_values) * values.size() / static_cast<size_t>(head_values));
    if (ggml_is_quantized(type)) return Quantized(type, values, head_values);
    if (type == GGML_TYPE_F16) {
      ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(bytes.data()),
                            static_cast<int64_t>(values.size()));
    } else if (type == GGML_TYPE_BF16) {
      ggml_fp32_to_bf16_row(values.data(), reinterpret_cast<ggml_bf16_t*>(bytes.data()),
                            static_cast<int64_t>(values.size()));
    } else {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
  }
  std::vector<float> Rounded(const std::vector<float>& values) const {
    if (type == GGML_TYPE_F32) return values;
    return Dequantized(type, Stored(values), static_cast<int64_t>(values.size()));
  }

  // Rows of heads, given head by head: as they are, or permuted from cells that hold all heads.
  ggml_tensor* PlaceHeads(Operation& operation, ggml_type of_type, int64_t n, int64_t n_heads,
                          const uint8_t* data) const {
    ggml_context* context = operation.context();
    if (!as_models_do) {
      ggml_tensor* tensor = ggml_new_tensor_4d(context, of_type, head_values, n, n_heads, streams);
      operation.Place(tensor, data);
      return tensor;
    }
    const size_t bytes = ggml_row_size(of_type, head_values);
    std::vector<uint8_t> permuted(bytes * static_cast<size_t>(n * n_heads * streams));
    for (int64_t stream = 0; stream < streams; ++stream) {
      for (int64_t head = 0; head < n_heads; ++head) {
        for (int64_t i = 0; i < n; ++i) {
          std::memcpy(&permuted[bytes * static_cast<size_t>((stream * n + i) * n_heads + head)],
                      data + bytes * static_cast<size_t>((stream * n_heads + head) * n + i), bytes);
        }
      }
    }
    ggml_tensor* tensor = ggml_new_tensor_4d(context, of_type, head_values, n_heads, n, streams);
    operation.Place(tensor, permuted.data());
    return ggml_permute(context, tensor, 0, 2, 1, 3);
  }

  // [value, head, row, stream]
  std::vector<float> Compute(int threads = 1, bool ours = true) const {
    const auto hold = AttentionHold::Take(ours);
    Operation operation(threads);
    ggml_context* context = operation.context();
    const int64_t mask_rows = as_models_do ? rows + 5 : rows;
    ggml_tensor* mask = ggml_new_tensor_4d(context, GGML_TYPE_F16, cells, mask_rows, 1, streams);
    std::vector<ggml_fp16_t> halves;
    for (int64_t stream = 0; stream < streams; ++stream) {
      for (int64_t row = 0; row < mask_rows; ++row) {
        for (int64_t cell = 0; cell < cells; ++cell) {
          halves.push_back(ggml_fp32_to_fp16(row < rows && sees(row, cell, *this) ? bias(row, cell) : -INFINITY));
        }
      }
    }
    operation.Place(mask, halves.data());
    ggml_tensor* tq = PlaceHeads(operation, GGML_TYPE_F32, rows, heads, reinterpret_cast<const uint8_t*>(q.data()));
    ggml_tensor* tk = PlaceHeads(operation, type, cells, shared_heads, Stored(k).data());
    ggml_tensor* tv = PlaceHeads(operation, type, cells, shared_heads, Stored(v).data());
    ggml_tensor* result = ggml_flash_attn_ext(context, tq, tk, tv, mask, scale(), max_bias, softcap);
    if (sinks) {
      ggml_tensor* ts = ggml_new_tensor_1d(context, GGML_TYPE_F32, heads);
      operation.Place(ts, sink.data());
      ggml_flash_attn_ext_add_sinks(result, ts);
    }
    operation.SetResult(result);
    return operation.Result();
  }

  std::vector<double> Exact() const {
    const std::vector<float> keys = Rounded(k), values = Rounded(v);
    std::vector<double> result(static_cast<size_t>(head_values * heads * rows * streams));
    const double whole = std::pow(2.0, std::floor(std::log2(static_cast<double>(heads))));
    for (int64_t stream = 0; stream < streams; ++stream) {
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t shared = head / (heads / shared_heads);
        const auto h = static_cast<double>(head);
        const double slope = max_bias == 0.0f ? 1.0
                             : h < whole      ? std::pow(2.0, -max_bias / whole * (h + 1))
                                              : std::pow(2.0, -max_bias / 2 / whole * (2 * (h - whole) + 1));
        for (int64_t row = 0; row < rows; ++row) {
          const float* query = &q[static_cast<size_t>(((stream * heads + head) * rows + row) * head_values)];
          std::vector<double> scores;
          std::vector<int64_t> seen;
          for (int64_t cell = 0; cell < cells; ++cell) {
            if (!sees(row, cell, *this)) continue;
            double dot = 0;
            for (int64_t i = 0; i < head_values; ++i) {
              dot += static_cast<double>(query[i]) *
                     keys[static_cast<size_t>(((stream * shared_heads + shared) * cells + cell) * head_values + i)];
            }
            double score = dot * scale();
            if (softcap != 0.0f) score = softcap * std::tanh(score / softcap);
            scores.push_back(score + slope * bias(row, cell));
            seen.push_back(cell);
          }
          double largest = sinks ? sink[static_cast<size_t>(head)] : -INFINITY;
          for (double score : scores) largest = std::max(largest, score);
          double sum = sinks ? std::exp(sink[static_cast<size_t>(head)] - largest) : 0.0;
          for (double score : scores) sum += std::exp(score - largest);
          double* out = &result[static_cast<size_t>(((stream * rows + row) * heads + head) * head_values)];
          for (size_t s = 0; s < seen.size(); ++s) {
            const double weight = std::exp(scores[s] - largest) / sum;
            for (int64_t i = 0; i < head_values; ++i) {
              out[i] +=
                  weight *
                  values[static_cast<size_t>(((stream * shared_heads + shared) * cells + seen[s]) * head_values + i)];
            }
          }
        }
      }
    }
    return result;
  }
};

double LargestError(const std::vector<float>& values, const std::vector<double>& exact) {
  double error = 0;
  for (size_t i = 0; i < values.size(); ++i) error = std::max(error, std::fabs(values[i] - exact[i]));
  return error;
}

class AttentionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Install();
    ASSERT_TRUE(UseInstructionSet(GetParam()));
  }
  void TearDown() override { UseInstructionSet(""); }

  static void ExpectRight(Case& c, const char* what) {
    c.Fill();
    const std::vector<double> exact = c.Exact();
    const double ours = LargestError(c.Compute(3), exact);
    const double ggml = LargestError(c.Compute(2, /*ours=*/false), exact);
    EXPECT_LE(ours, std::max(2e-6, 1.05 * ggml)) << what;
    EXPECT_LE(ours, 1e-5) << what;
  }
};

TEST_P(AttentionTest, IsRightForEveryTypeOfMemory) {
  for (ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_F32}) {
    for (int64_t cells : {1, 5, 64, 65, 300, 1100}) {
      Case c{.rows = 1, .cells = cells, .type = type};
      ExpectRight(c, ggml_type_name(type));
    }
    Case c{.head_values = 96, .rows = 9, .cells = 700, .type = type};
    ExpectRight(c, ggml_type_name(type));
  }
}

TEST_P(AttentionTest, KnowsEveryKindOfScore) {
  Case bias{.heads = 6, .rows = 5, .cells = 333, .max_bias = 8.0f};
  ExpectRight(bias, "ALiBi");
  Case cap{.rows = 5, .cells = 333, .softcap = 3.0f};
  ExpectRight(cap, "soft cap");
  Case sinks{.rows = 5, .cells = 333, .sinks = true};
  ExpectRight(sinks, "sinks");
  Case sinks_alone{.rows = 2, .cells = 20, .sinks = true};
  sinks_alone.sees = [](int64_t row, int64_t, const Case&) { return row == 0; };
  ExpectRight(sinks_alone, "sinks and a row that sees nothing");
  Case blind{.rows = 3, .cells = 80};
  blind.sees = [](int64_t row, int64_t cell, const Case&) { return row == 1 && cell < 70; };
  ExpectRight(blind, "rows that see nothing");
  Case window{.rows = 12, .cells = 900};
  window.sees = [](int64_t row, int64_t cell, const Case& c) {
    const int64_t own = c.cells - c.rows + row;
    return cell <= own && cell > own - 300;
  };
  ExpectRight(window, "a sliding window");
  Case many_heads{.heads = 80, .shared_heads = 1, .rows = 2, .cells = 150};
  ExpectRight(many_heads, "more heads than a tile");
  Case lean_window{.heads = 3, .shared_heads = 1, .rows = 12, .cells = 900};  // whose spans are shared out
  lean_window.sees = window.sees;
  ExpectRight(lean_window, "a sliding window of few heads");
  Case as_models_do{.rows = 7, .cells = 600, .streams = 2, .as_models_do = true};
  ExpectRight(as_models_do, "permuted tensors");
  Case streams{.rows = 4, .cells = 290, .streams = 3};
  ExpectRight(streams, "streams");
  Case prompt{.rows = 130, .cells = 300};
  ExpectRight(prompt, "a slice of a prompt");
}

// Row r of many is the row computed alone, with any number of threads, whatever lies in cells it does not see.
TEST_P(AttentionTest, ARowDependsOnNothingButTheCellsItSees) {
  for (ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
    for (int64_t cells : {130, 640, 1500}) {
      Case all{.rows = 17, .cells = cells, .type = type};
      all.Fill();
      const std::vector<float> together = all.Compute(1);
      for (int threads : {2, 3}) {
        const std::vector<float> again = all.Compute(threads);
        EXPECT_EQ(0, std::memcmp(again.data(), together.data(), again.size() * sizeof(float))) << threads;
      }
      const auto row_size = static_cast<size_t>(all.head_values * all.heads);
      for (int64_t row : {0, 1, 9, 16}) {
        // The same row, with the cells it sees at other places: every third cell of a larger memory is in use.
        Case alone{.rows = 1, .cells = 3 * (cells - all.rows + row) + 40, .type = type};
        alone.Fill();
        alone.sees = [](int64_t, int64_t cell, const Case& c) { return cell % 3 == 1 && cell <= c.cells - 40 + 1; };
        for (int64_t head = 0; head < all.heads; ++head) {
          std::copy_n(&all.q[static_cast<size_t>((head * all.rows + row) * 64)], 64,
                      &alone.q[static_cast<size_t>(head * 64)]);
        }
        for (int64_t head = 0; head < all.shared_heads; ++head) {
          for (int64_t cell = 0; cell <= cells - all.rows + row; ++cell) {
            const auto from = static_cast<size_t>((head * all.cells + cell) * 64);
            const auto to = static_cast<size_t>((head * alone.cells + 3 * cell + 1) * 64);
            std::copy_n(&all.k[from], 64, &alone.k[to]);
            std::copy_n(&all.v[from], 64, &alone.v[to]);
          }
        }
        for (int threads : {1, 2}) {
          const std::vector<float> one = alone.Compute(threads);
          EXPECT_EQ(0, std::memcmp(one.data(), together.data() + static_cast<size_t>(row) * row_size,
                                   row_size * sizeof(float)))
              << ggml_type_name(type) << " row " << row << " of " << cells << " cells, " << threads << " threads";
        }
      }
    }
  }
}

// A draft's cell may hold anything, infinities too: rows before it must not notice.
TEST_P(AttentionTest, WhatARowDoesNotSeeDoesNotTouchIt) {
  Case calm{.rows = 6, .cells = 100};
  calm.Fill();
  Case wild = calm;
  for (int64_t head = 0; head < wild.shared_heads; ++head) {
    for (int64_t i = 0; i < 64; ++i) {
      const auto last = static_cast<size_t>((head * wild.cells + 99) * 64 + i);
      wild.v[last] = INFINITY;
      wild.k[last] = i % 2 == 0 ? INFINITY : -INFINITY;
    }
  }
  const std::vector<float> expected = calm.Compute(2), result = wild.Compute(2);
  const size_t rows_before = static_cast<size_t>(64 * wild.heads * 5);
  EXPECT_EQ(0, std::memcmp(result.data(), expected.data(), rows_before * sizeof(float)));
}

// The keys of multi-head latent attention are longer than its values, which are the first part of them.
TEST_P(AttentionTest, ValuesMayBeTheFirstPartOfKeys) {
  constexpr int64_t kKey = 96, kValue = 64, kHeads = 8, kRows = 3, kCells = 300;
  Operation operation(2);
  const auto hold = AttentionHold::Take(true);
  ggml_context* context = operation.context();
  const std::vector<float> q = RandomFloats(kKey * kRows * kHeads, 1), k = RandomFloats(kKey * kCells, 2);
  ggml_tensor* tq = ggml_new_tensor_3d(context, GGML_TYPE_F32, kKey, kRows, kHeads);
  ggml_tensor* tk = ggml_new_tensor_3d(context, GGML_TYPE_F32, kKey, kCells, 1);
  operation.Place(tq, q.data());
  operation.Place(tk, k.data());
  ggml_tensor* tv = ggml_view_3d(context, tk, kValue, kCells, 1, tk->nb[1], tk->nb[2], 0);
  operation.SetResult(ggml_flash_attn_ext(context, tq, tk, tv, nullptr, 0.1f, 0.0f, 0.0f));  // all see all
  const std::vector<float> result = operation.Result();
  for (int64_t head = 0; head < kHeads; ++head) {
    for (int64_t row = 0; row < kRows; ++row) {
      std::vector<double> weights;
      double sum = 0;
      for (int64_t cell = 0; cell < kCells; ++cell) {
        double dot = 0;
        for (int64_t i = 0; i < kKey; ++i) {
          dot += static_cast<double>(q[static_cast<size_t>((head * kRows + row) * kKey + i)]) *
                 k[static_cast<size_t>(cell * kKey + i)];
        }
        weights.push_back(std::exp(dot * 0.1f));
        sum += weights.back();
      }
      for (int64_t i = 0; i < kValue; ++i) {
        double exact = 0;
        for (int64_t cell = 0; cell < kCells; ++cell) {
          exact += weights[static_cast<size_t>(cell)] / sum * k[static_cast<size_t>(cell * kKey + i)];
        }
        EXPECT_NEAR(result[static_cast<size_t>((row * kHeads + head) * kValue + i)], exact, 1e-5);
      }
    }
  }
}

#ifndef OUTRIDER_NO_PROPERTY_TESTS
RC_GTEST_PROP(AttentionShapes, AnyShapeIsRightAndTheSameForAnyThreads, ()) {
  Install();
  const auto sets = Sets();
  RC_PRE(!sets.empty());
  UseInstructionSet(sets[*rc::gen::inRange<size_t>(0, sets.size())]);
  Case c;
  c.head_values = 32 * *rc::gen::inRange<int64_t>(1, 6);
  c.shared_heads = *rc::gen::inRange<int64_t>(1, 4);
  c.heads = c.shared_heads * *rc::gen::inRange<int64_t>(1, 8);
  c.rows = *rc::gen::inRange<int64_t>(1, 40);
  c.cells = c.rows + *rc::gen::inRange<int64_t>(0, 900);
  c.streams = *rc::gen::inRange<int64_t>(1, 3);
  c.type = *rc::gen::element(GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_F32);
  c.sinks = *rc::gen::arbitrary<bool>();
  c.as_models_do = *rc::gen::arbitrary<bool>();
  c.seed = *rc::gen::arbitrary<unsigned>();
  c.Fill();
  const std::vector<float> one = c.Compute(1), three = c.Compute(3);
  UseInstructionSet("");
  RC_ASSERT(std::memcmp(one.data(), three.data(), one.size() * sizeof(float)) == 0);
  RC_ASSERT(LargestError(one, c.Exact()) <= 1e-5);
}
#endif

INSTANTIATE_TEST_SUITE_P(AllSets, AttentionTest, testing::ValuesIn(Sets()), [](const auto& set) {
  std::string name = set.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionTest);

}  // namespace
}  // namespace outrider::kernels
