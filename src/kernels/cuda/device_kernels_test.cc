// The kernels on the device, through ggml's operations: against a computation in double precision, and bit by bit
// between batches of different shape. Needs an NVIDIA GPU; built only with CUDA.
#include "kernels/device_kernels.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace outrider::kernels::device {
namespace {

struct Free {
  void operator()(ggml_context* context) const { ggml_free(context); }
  void operator()(ggml_backend* backend) const { ggml_backend_free(backend); }
  void operator()(ggml_backend_buffer* buffer) const { ggml_backend_buffer_free(buffer); }
};
using ContextPtr = std::unique_ptr<ggml_context, Free>;
using BufferPtr = std::unique_ptr<ggml_backend_buffer, Free>;

ggml_backend_t Device() {
  static const std::unique_ptr<ggml_backend, Free> backend = [] {
    Use(true);
    return std::unique_ptr<ggml_backend, Free>(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_GPU, nullptr));
  }();
  return backend.get();
}

std::vector<float> Noise(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// A graph under construction on the device.
class Graph {
 public:
  Graph() : context_(ggml_init({size_t{1} << 20, nullptr, true})) {}

  ggml_context* context() { return context_.get(); }

  // Inputs must have been created; their values are set after this.
  void Allocate(ggml_tensor* output) {
    graph_ = ggml_new_graph(context());
    ggml_build_forward_expand(graph_, output);
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context(), Device()));
    output_ = output;
  }

  std::vector<float> Compute() {
    EXPECT_EQ(ggml_backend_graph_compute(Device(), graph_), GGML_STATUS_SUCCESS);
    std::vector<float> values(static_cast<size_t>(ggml_nelements(output_)));
    ggml_backend_tensor_get(output_, values.data(), 0, ggml_nbytes(output_));
    return values;
  }

 private:
  ContextPtr context_;
  BufferPtr buffer_;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* output_ = nullptr;
};

template <typename T>
void Set(ggml_tensor* tensor, const std::vector<T>& values) {
  ASSERT_EQ(ggml_nbytes(tensor), values.size() * sizeof(T));
  ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
}

// A weight matrix on the device and its values.
class Matrix {
 public:
  Matrix(ggml_type type, int64_t inputs, int64_t outputs, unsigned seed)
      : context_(ggml_init({1 << 16, nullptr, true})) {
    tensor_ = ggml_new_tensor_2d(context_.get(), type, inputs, outputs);
    buffer_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), Device()));
    ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    const std::vector<float> values = Noise(static_cast<size_t>(inputs * outputs), seed);
    std::vector<uint8_t> packed(ggml_nbytes(tensor_));
    const std::vector<float> importance(static_cast<size_t>(inputs), 1.0f);
    ggml_quantize_chunk(type, values.data(), packed.data(), 0, outputs, inputs, importance.data());
    ggml_backend_tensor_set(tensor_, packed.data(), 0, packed.size());
    values_.resize(values.size());
    ggml_get_type_traits(type)->to_float(packed.data(), values_.data(), static_cast<int64_t>(values_.size()));
  }

  ggml_tensor* tensor() { return tensor_; }
  const std::vector<float>& values() const { return values_; }

 private:
  ContextPtr context_;
  BufferPtr buffer_;
  ggml_tensor* tensor_;
  std::vector<float> values_;
};

std::vector<float> Multiply(Matrix& matrix, const std::vector<float>& input, int columns) {
  Graph graph;
  ggml_tensor* x = ggml_new_tensor_2d(graph.context(), GGML_TYPE_F32, matrix.tensor()->ne[0], columns);
  graph.Allocate(ggml_mul_mat(graph.context(), matrix.tensor(), x));
  Set(x, std::vector<float>(input.begin(), input.begin() + columns * matrix.tensor()->ne[0]));
  return graph.Compute();
}

double RelativeError(const std::vector<float>& values, const std::vector<double>& expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

struct Shape {
  int64_t inputs, outputs;
};

class MatmulTest : public testing::TestWithParam<ggml_type> {};

TEST_P(MatmulTest, AgreesWithDoublePrecisionAndIsAsExactAsGgml) {
  for (const Shape& shape : {Shape{256, 16}, Shape{2304, 2304}, Shape{6144, 768}, Shape{1536, 40}, Shape{512, 1000}}) {
    Matrix matrix(GetParam(), shape.inputs, shape.outputs, 1);
    constexpr int kColumns = 70;
    const std::vector<float> input = Noise(static_cast<size_t>(kColumns * shape.inputs), 2);
    std::vector<double> expected(static_cast<size_t>(kColumns * shape.outputs));
    for (int64_t c = 0; c < kColumns; ++c) {
      for (int64_t r = 0; r < shape.outputs; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < shape.inputs; ++i) {
          sum += static_cast<double>(matrix.values()[r * shape.inputs + i]) * input[c * shape.inputs + i];
        }
        expected[c * shape.outputs + r] = sum;
      }
    }
    for (const int columns : {1, 5, 8, 9, 16, 17, 33, 64, 70}) {
      const std::vector<double> wanted(expected.begin(), expected.begin() + columns * shape.outputs);
      const double ours = RelativeError(Multiply(matrix, input, columns), wanted);
      Use(false);
      const double ggmls = RelativeError(Multiply(matrix, input, columns), wanted);
      Use(true);
      EXPECT_LT(ours, 0.02) << shape.inputs << "x" << shape.outputs << ", columns: " << columns;
      EXPECT_LT(ours, 1.1 * ggmls + 1e-4) << shape.inputs << "x" << shape.outputs << ", columns: " << columns;
    }
  }
}

TEST_P(MatmulTest, AColumnDoesNotDependOnTheOthers) {
  for (const Shape& shape : {Shape{256, 16}, Shape{2304, 2304}, Shape{6144, 768}, Shape{1536, 40}}) {
    Matrix matrix(GetParam(), shape.inputs, shape.outputs, 3);
    constexpr int kColumns = 600;
    const std::vector<float> input = Noise(static_cast<size_t>(kColumns * shape.inputs), 4);
    const std::vector<float> all = Multiply(matrix, input, kColumns);
    for (const int columns : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 511, 512}) {
      const std::vector<float> some = Multiply(matrix, input, columns);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
          << shape.inputs << "x" << shape.outputs << ", columns: " << columns;
    }
    // Another place among the columns.
    const std::vector<float> tail(input.end() - 3 * shape.inputs, input.end());
    const std::vector<float> moved = Multiply(matrix, tail, 3);
    EXPECT_EQ(std::memcmp(moved.data(), all.data() + (kColumns - 3) * shape.outputs, moved.size() * sizeof(float)), 0);
  }
}

// ggml-cuda joins these operations into one if there is one column.
TEST_P(MatmulTest, JoinedOperationsGiveTheSame) {
  constexpr int64_t kInputs = 768, kOutputs = 1536;
  Matrix up(GetParam(), kInputs, kOutputs, 5), gate(GetParam(), kInputs, kOutputs, 6);
  const std::vector<float> input = Noise(2 * kInputs, 7), bias = Noise(2 * kOutputs, 8);
  const auto compute = [&](int columns, bool glu) {
    Graph graph;
    ggml_tensor* x = ggml_new_tensor_2d(graph.context(), GGML_TYPE_F32, kInputs, columns);
    ggml_tensor* b = ggml_new_tensor_2d(graph.context(), GGML_TYPE_F32, kOutputs, columns);
    ggml_tensor* y = ggml_mul_mat(graph.context(), up.tensor(), x);
    y = glu ? ggml_swiglu_split(graph.context(), ggml_mul_mat(graph.context(), gate.tensor(), x), y)
            : ggml_add(graph.context(), y, b);
    graph.Allocate(y);
    Set(x, std::vector<float>(input.begin(), input.begin() + columns * kInputs));
    if (!glu) Set(b, std::vector<float>(bias.begin(), bias.begin() + columns * kOutputs));
    return graph.Compute();
  };
  for (const bool glu : {false, true}) {
    const std::vector<float> one = compute(1, glu), two = compute(2, glu);
    EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0) << (glu ? "gate" : "bias");
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulTest,
                         testing::Values(GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0,
                                         GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K),
                         [](const auto& info) { return std::string(ggml_type_name(info.param)); });

struct AttentionCase {
  int values, heads, group, sequences, rows, cells;
  float max_bias = 0, softcap = 0;
  bool sinks = false;
};

// The memory and the questions of a case. A row sees one cell more than the row before it (Attend makes the mask).
struct AttentionData {
  explicit AttentionData(const AttentionCase& c)
      : q(Noise(static_cast<size_t>(c.values) * c.heads * c.rows * c.sequences, 1)),
        k(Noise(static_cast<size_t>(c.values) * c.heads / c.group * c.cells * c.sequences, 2)),
        v(Noise(k.size(), 3)),
        sinks(Noise(static_cast<size_t>(c.heads), 4)) {}

  std::vector<float> q, k, v, sinks;
};

std::vector<ggml_fp16_t> Halves(const std::vector<float>& values) {
  std::vector<ggml_fp16_t> halves(values.size());
  ggml_fp32_to_fp16_row(values.data(), halves.data(), static_cast<int64_t>(values.size()));
  return halves;
}

// Computes rows [first, first + rows) of the first `sequences` sequences, with `cells` cells in the operation.
// The result: by sequence, row, head and value.
std::vector<float> Attend(const AttentionCase& c, const AttentionData& data, int first, int rows, int sequences,
                          int cells) {
  const int kv_heads = c.heads / c.group;
  Graph graph;
  ggml_context* context = graph.context();
  ggml_tensor* q = ggml_new_tensor_4d(context, GGML_TYPE_F32, c.values, rows, c.heads, sequences);
  ggml_tensor* k = ggml_new_tensor_4d(context, GGML_TYPE_F16, c.values, cells, kv_heads, sequences);
  ggml_tensor* v = ggml_new_tensor_4d(context, GGML_TYPE_F16, c.values, cells, kv_heads, sequences);
  ggml_tensor* mask = ggml_new_tensor_4d(context, GGML_TYPE_F16, cells, rows, 1, sequences);
  ggml_tensor* sinks = c.sinks ? ggml_new_tensor_1d(context, GGML_TYPE_F32, c.heads) : nullptr;
  ggml_tensor* y = ggml_flash_attn_ext(context, q, k, v, mask, 1.0f / std::sqrt(static_cast<float>(c.values)),
                                       c.max_bias, c.softcap);
  ggml_flash_attn_ext_add_sinks(y, sinks);
  graph.Allocate(y);
  std::vector<float> q_values, k_values, v_values, mask_values;
  for (int s = 0; s < sequences; ++s) {
    for (int h = 0; h < c.heads; ++h) {
      for (int r = first; r < first + rows; ++r) {
        const float* from = data.q.data() + ((static_cast<size_t>(s) * c.rows + r) * c.heads + h) * c.values;
        q_values.insert(q_values.end(), from, from + c.values);
      }
    }
    for (int h = 0; h < kv_heads; ++h) {
      for (int cell = 0; cell < cells; ++cell) {
        // Cells that nobody sees hold whatever was there.
        const bool known = cell < c.cells;
        const size_t at = ((static_cast<size_t>(s) * kv_heads + h) * c.cells + (known ? cell : 0)) * c.values;
        for (int i = 0; i < c.values; ++i) {
          k_values.push_back(known ? data.k[at + i] : 7.0f);
          v_values.push_back(known ? data.v[at + i] : 9.0f);
        }
      }
    }
    for (int r = first; r < first + rows; ++r) {
      const int seen = c.cells - c.rows + r + 1 - 10 * s;
      for (int cell = 0; cell < cells; ++cell)
        mask_values.push_back(cell < seen ? -0.01f * (c.max_bias > 0) * (seen - cell) : -INFINITY);
    }
  }
  Set(q, q_values);
  Set(k, Halves(k_values));
  Set(v, Halves(v_values));
  Set(mask, Halves(mask_values));
  if (sinks != nullptr) Set(sinks, data.sinks);
  return graph.Compute();
}

class AttentionTest : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTest, IsAsExactAsGgml) {
  const AttentionCase& c = GetParam();
  const AttentionData data(c);
  // ggml's CPU kernel for one row would be a reference of its own precision; ggml-cuda's is compared instead.
  const std::vector<float> ours = Attend(c, data, 0, c.rows, c.sequences, GGML_PAD(c.cells, 256));
  Use(false);
  const std::vector<float> ggmls = Attend(c, data, 0, c.rows, c.sequences, GGML_PAD(c.cells, 256));
  Use(true);
  EXPECT_LT(RelativeError(ours, {ggmls.begin(), ggmls.end()}), 2e-3);
}

TEST_P(AttentionTest, ARowDependsOnTheCellsItSeesOnly) {
  const AttentionCase& c = GetParam();
  const AttentionData data(c);
  const size_t row_values = static_cast<size_t>(c.heads) * c.values;
  const int cells = GGML_PAD(c.cells, 256);
  const std::vector<float> all = Attend(c, data, 0, c.rows, c.sequences, cells);
  const auto same = [&](const std::vector<float>& some, int first, int rows, int sequences) {
    for (int s = 0; s < sequences; ++s) {
      if (std::memcmp(some.data() + s * rows * row_values,
                      all.data() + (static_cast<size_t>(s) * c.rows + first) * row_values,
                      rows * row_values * sizeof(float)) != 0) {
        return false;
      }
    }
    return true;
  };
  for (const int rows : {1, 2, 5, 8, 16, 33, 100}) {
    for (const int first : {0, c.rows - rows}) {
      if (rows > c.rows) continue;
      EXPECT_TRUE(same(Attend(c, data, first, rows, c.sequences, cells), first, rows, c.sequences)) << rows << " rows";
      EXPECT_TRUE(same(Attend(c, data, first, rows, 1, cells), first, rows, 1)) << rows << " rows of one sequence";
      EXPECT_TRUE(same(Attend(c, data, first, rows, c.sequences, cells + 1024), first, rows, c.sequences))
          << rows << " rows, longer neighbours";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionTest,
                         testing::Values(AttentionCase{64, 9, 3, 3, 40, 300}, AttentionCase{64, 36, 3, 1, 520, 1500},
                                         AttentionCase{128, 32, 4, 2, 64, 700}, AttentionCase{128, 8, 8, 2, 20, 2100},
                                         AttentionCase{80, 8, 1, 2, 20, 300}, AttentionCase{96, 6, 2, 2, 20, 300},
                                         AttentionCase{112, 8, 2, 1, 20, 300},
                                         AttentionCase{64, 12, 3, 2, 20, 300, 8.0f},
                                         AttentionCase{128, 8, 2, 2, 20, 300, 0, 30.0f},
                                         AttentionCase{64, 8, 8, 2, 20, 300, 0, 0, true}));

}  // namespace
}  // namespace outrider::kernels::device
