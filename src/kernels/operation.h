// One operation computed by ggml's CPU backend: for trying out kernels, at start-up, in tests and in benchmarks.
#pragma once

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cassert>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace outrider::kernels {

inline std::vector<float> RandomFloats(size_t n, unsigned seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Rows of floats as the given type, as they would lie in a file.
inline std::vector<uint8_t> Quantized(ggml_type type, const std::vector<float>& values, int64_t row_values) {
  const auto rows = static_cast<int64_t>(values.size()) / row_values;
  std::vector<uint8_t> bytes(ggml_row_size(type, row_values) * static_cast<size_t>(rows));
  ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, row_values, nullptr);
  return bytes;
}

// Weights of the given type for which no floats are quantised: any bits, but scales that are finite, as any bytes below
// 64 are, whatever part of a block they are in.
inline std::vector<uint8_t> AnyWeights(ggml_type type, int64_t values, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(ggml_row_size(type, values));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % 64);
  return bytes;
}

inline std::vector<float> Dequantized(ggml_type type, const std::vector<uint8_t>& bytes, int64_t values) {
  std::vector<float> floats(static_cast<size_t>(values));
  if (type == GGML_TYPE_F32) {
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }
  ggml_get_type_traits(type)->to_float(bytes.data(), floats.data(), values);
  return floats;
}

// Tensors of an operation, each in a buffer of its own type, and the graph of that one operation.
class Operation {
 public:
  explicit Operation(int threads = 1) : threads_(threads), backend_(ggml_backend_cpu_init()) {
    context_.reset(ggml_init({16 * 1024 * 1024, nullptr, true}));
    ggml_backend_cpu_set_n_threads(backend_.get(), threads_);
  }

  ggml_context* context() { return context_.get(); }

  void Place(ggml_tensor* tensor, ggml_backend_buffer_type_t type, const void* data) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, ggml_backend_buft_get_alloc_size(type, tensor));
    buffers_.emplace_back(buffer);
    ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
    ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
  }
  void Place(ggml_tensor* tensor, const void* data) { Place(tensor, ggml_backend_cpu_buffer_type(), data); }

  void SetResult(ggml_tensor* result) {
    result_ = result;
    graph_ = ggml_new_graph(context());
    ggml_build_forward_expand(graph_, result_);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), ggml_nbytes(result_));
    buffers_.emplace_back(buffer);
    ggml_backend_tensor_alloc(buffer, result_, ggml_backend_buffer_get_base(buffer));
  }

  void Compute() { ggml_backend_graph_compute(backend_.get(), graph_); }

  std::vector<float> Result() {
    Compute();
    std::vector<float> values(static_cast<size_t>(ggml_nelements(result_)));
    ggml_backend_tensor_get(result_, values.data(), 0, ggml_nbytes(result_));
    return values;
  }

 private:
  struct Free {
    void operator()(ggml_context* p) const { ggml_free(p); }
    void operator()(ggml_backend_t p) const { ggml_backend_free(p); }
    void operator()(ggml_backend_buffer_t p) const { ggml_backend_buffer_free(p); }
  };
  int threads_;
  std::unique_ptr<ggml_backend, Free> backend_;
  std::unique_ptr<ggml_context, Free> context_;
  std::vector<std::unique_ptr<ggml_backend_buffer, Free>> buffers_;
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* result_ = nullptr;
};

// weights [rows × row_values] times columns [columns × row_values], the weights in a buffer of the given type.
inline std::vector<float> MultiplyIn(ggml_backend_buffer_type_t type, ggml_type weight_type,
                                     const std::vector<uint8_t>& weights, int64_t row_values, int64_t rows,
                                     const std::vector<float>& x, int threads = 1) {
  Operation operation(threads);
  const auto columns = static_cast<int64_t>(x.size()) / row_values;
  ggml_tensor* w = ggml_new_tensor_2d(operation.context(), weight_type, row_values, rows);
  ggml_tensor* in = ggml_new_tensor_2d(operation.context(), GGML_TYPE_F32, row_values, columns);
  operation.Place(w, type, weights.data());
  operation.Place(in, x.data());
  operation.SetResult(ggml_mul_mat(operation.context(), w, in));
  return operation.Result();
}

}  // namespace outrider::kernels
