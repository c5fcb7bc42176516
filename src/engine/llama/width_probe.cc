#include "engine/llama/width_probe.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <gguf.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

#include "base/free_with.h"
#include "kernels/layout.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

// Small enough to take no time. The first is large enough for every kernel's tiles. The others have no whole tiles for
// some kernels, so that ggml computes them by other kernels.
struct Shape {
  int64_t inputs, outputs;
};
constexpr std::array kShapes = {Shape{512, 128}, Shape{64, 4},   Shape{64, 8},   Shape{64, 32},
                                Shape{32, 64},   Shape{128, 64}, Shape{256, 16}, Shape{576, 192}};

using ContextPtr = std::unique_ptr<ggml_context, FreeWith<ggml_free>>;
using BufferPtr = std::unique_ptr<ggml_backend_buffer, FreeWith<ggml_backend_buffer_free>>;
using BackendPtr = std::unique_ptr<ggml_backend, FreeWith<ggml_backend_free>>;
using GgufPtr = std::unique_ptr<gguf_context, FreeWith<gguf_free>>;

ContextPtr MakeContext() {
  return ContextPtr(ggml_init({ggml_tensor_overhead() * 8 + ggml_graph_overhead(), nullptr, true}));
}

// Deterministic values within the usual range of activations and weights.
std::vector<float> Noise(int64_t count, uint32_t state) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
  }
  return values;
}

// Where ggml may put weights that it reorders: for its vector kernels, and on some CPUs for matrix instructions (AMX).
std::vector<ggml_backend_buffer_type_t> RepackedTypes() {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const auto extra_types = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
  std::vector<ggml_backend_buffer_type_t> types;
  if (extra_types == nullptr) return types;
  for (ggml_backend_buffer_type_t* type = extra_types(cpu); type != nullptr && *type != nullptr; ++type) {
    if (*type != kernels::BufferType()) types.push_back(*type);
  }
  return types;
}

class Product {
 public:
  Product(ggml_backend* backend, ggml_type type, const Shape& shape, ggml_backend_buffer_type_t weights_in)
      : inputs_(shape.inputs), outputs_(shape.outputs), backend_(backend), weights_context_(MakeContext()) {
    weights_ = ggml_new_tensor_2d(weights_context_.get(), type, inputs_, outputs_);
    weights_buffer_.reset(
        ggml_backend_buft_alloc_buffer(weights_in, ggml_backend_buft_get_alloc_size(weights_in, weights_)));
    ggml_backend_tensor_alloc(weights_buffer_.get(), weights_, ggml_backend_buffer_get_base(weights_buffer_.get()));
  }

  // Whether ggml would keep a model's weights of this shape and type in this kind of buffer.
  bool Supported() {
    ContextPtr context = MakeContext();
    ggml_tensor* input = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, inputs_, kMaxProbeRows);
    return ggml_backend_supports_op(backend_, ggml_mul_mat(context.get(), weights_, input));
  }

  void Fill() {
    const std::vector<float> values = Noise(inputs_ * outputs_, 1);
    const std::vector<float> importance(static_cast<size_t>(inputs_), 1.0f);
    std::vector<uint8_t> packed(ggml_nbytes(weights_));
    ggml_quantize_chunk(weights_->type, values.data(), packed.data(), 0, outputs_, inputs_, importance.data());
    ggml_backend_tensor_set(weights_, packed.data(), 0, packed.size());
  }

  // The product with the first `rows` rows of `input`.
  std::vector<float> Compute(std::span<const float> input, int rows) {
    ContextPtr context = MakeContext();
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, inputs_, rows);
    ggml_tensor* y = ggml_mul_mat(context.get(), weights_, x);
    ggml_cgraph* graph = ggml_new_graph_custom(context.get(), 4, false);
    ggml_build_forward_expand(graph, y);
    BufferPtr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend_));
    ggml_backend_tensor_set(x, input.data(), 0, ggml_nbytes(x));
    ggml_backend_graph_compute(backend_, graph);
    std::vector<float> result(static_cast<size_t>(outputs_ * rows));
    ggml_backend_tensor_get(y, result.data(), 0, ggml_nbytes(y));
    return result;
  }

 private:
  const int64_t inputs_, outputs_;
  ggml_backend* const backend_;
  ContextPtr weights_context_;
  BufferPtr weights_buffer_;
  ggml_tensor* weights_;
};

// The file of one part of a split model, by its naming scheme.
std::string PartPath(const std::string& first, int part, int parts) {
  std::array<char, 4096> prefix{}, path{};
  if (part == 0 || llama_split_prefix(prefix.data(), prefix.size(), first.c_str(), 0, parts) <= 0) return first;
  llama_split_path(path.data(), path.size(), prefix.data(), part, parts);
  return path.data();
}

// Whether a weight is used in matrix products. Convolutions, group norms and some other parameters of recurrent layers
// have two dimensions too, but are multiplied element by element.
bool EntersProducts(std::string_view name) {
  const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
  return name.ends_with(".weight") && !has("conv") && !has("norm") && !has("lerp");
}

void AddWeightTypes(const gguf_context* file, ggml_context* tensors, std::map<ggml_type, bool>& in_tiles) {
  for (int64_t i = 0; i < gguf_get_n_tensors(file); ++i) {
    const ggml_tensor* tensor = ggml_get_tensor(tensors, gguf_get_tensor_name(file, i));
    if (ggml_n_dims(tensor) < 2 || !EntersProducts(ggml_get_name(tensor))) continue;
    bool& all_in_tiles = in_tiles.try_emplace(tensor->type, true).first->second;
    all_in_tiles = all_in_tiles && kernels::HasLayout(tensor);
  }
}

// Calls `visit(path, file, tensors)` for each part of a model.
template <typename Visit>
void ForEachPart(const std::string& path, Visit visit) {
  int parts = 1;
  for (int part = 0; part < parts; ++part) {
    const std::string part_path = PartPath(path, part, parts);
    ggml_context* raw = nullptr;
    GgufPtr file(gguf_init_from_file(part_path.c_str(), {true, &raw}));
    ContextPtr tensors(raw);
    if (!file) break;
    const int64_t split_count = gguf_find_key(file.get(), "split.count");
    if (part == 0 && split_count >= 0) parts = std::max<int>(1, gguf_get_val_u16(file.get(), split_count));
    visit(part_path, file.get(), tensors.get());
  }
}

}  // namespace

bool RowsAreIndependent(const RowProduct& product, int64_t inputs) {
  const std::vector<float> input = Noise(inputs * kMaxProbeRows, 7);
  const auto first_rows = [&](int rows) { return std::span(input).first(static_cast<size_t>(rows * inputs)); };
  std::vector<float> alone;
  for (int row = 0; row < kMaxProbeRows; ++row) {
    const std::vector<float> result =
        product(std::span(input).subspan(static_cast<size_t>(row * inputs), static_cast<size_t>(inputs)), 1);
    alone.insert(alone.end(), result.begin(), result.end());
  }
  for (int rows : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 31, 32, 33, 64, kMaxProbeRows}) {
    const std::vector<float> together = product(first_rows(rows), rows);
    if (std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

namespace {

enum class Rows { kIndependent, kDependent, kNotSupported };

Rows Probe(ggml_backend* backend, ggml_type type, ggml_backend_buffer_type_t place) {
  Rows found = Rows::kNotSupported;
  for (const Shape& shape : kShapes) {
    if (shape.inputs % ggml_blck_size(type) != 0) continue;
    Product product(backend, type, shape, place);
    if (!product.Supported()) continue;
    product.Fill();
    const auto compute = [&](std::span<const float> input, int rows) { return product.Compute(input, rows); };
    if (!RowsAreIndependent(compute, shape.inputs)) return Rows::kDependent;
    found = Rows::kIndependent;
  }
  return found;
}

}  // namespace

bool RowsAreIndependentOn(ggml_backend_dev_t device, ggml_type type) {
  const BackendPtr backend(ggml_backend_dev_init(device, nullptr));
  return backend != nullptr && Probe(backend.get(), type, ggml_backend_dev_buffer_type(device)) == Rows::kIndependent;
}

bool RowsAreIndependent(ggml_type type, WeightLayout layout) {
  const BackendPtr backend(ggml_backend_cpu_init());
  ggml_backend_cpu_set_n_threads(backend.get(), 1);
  std::vector<ggml_backend_buffer_type_t> places = {ggml_backend_cpu_buffer_type()};
  if (layout == WeightLayout::kRepacked) places = RepackedTypes();
  bool supported = false;
  // In which buffer a matrix is put depends on its shape, so rows must be independent in every buffer that takes the
  // type.
  for (ggml_backend_buffer_type_t place : places) {
    const Rows found = Probe(backend.get(), type, place);
    if (found == Rows::kDependent) return false;
    supported = supported || found == Rows::kIndependent;
  }
  // Types that ggml does not repack stay as they are.
  return supported || (layout == WeightLayout::kRepacked && RowsAreIndependent(type, WeightLayout::kPlain));
}

std::vector<WeightType> WeightTypes(const std::string& path) {
  std::map<ggml_type, bool> in_tiles;
  ForEachPart(path, [&](const std::string&, const gguf_context* file, ggml_context* tensors) {
    AddWeightTypes(file, tensors, in_tiles);
  });
  std::vector<WeightType> types;
  for (const auto& [type, all] : in_tiles) types.push_back({type, all});
  return types;
}

std::map<std::string, std::array<int64_t, 4>> WeightShapes(const std::string& path) {
  std::map<std::string, std::array<int64_t, 4>> shapes;
  ForEachPart(path, [&](const std::string&, const gguf_context* file, ggml_context* tensors) {
    for (int64_t i = 0; i < gguf_get_n_tensors(file); ++i) {
      const ggml_tensor* tensor = ggml_get_tensor(tensors, gguf_get_tensor_name(file, i));
      shapes[ggml_get_name(tensor)] = {tensor->ne[0], tensor->ne[1], tensor->ne[2], tensor->ne[3]};
    }
  });
  return shapes;
}

std::set<std::string> WeightsOfType(const std::string& path, ggml_type type) {
  std::set<std::string> names;
  ForEachPart(path, [&](const std::string&, const gguf_context* file, ggml_context*) {
    for (int64_t i = 0; i < gguf_get_n_tensors(file); ++i) {
      if (gguf_get_tensor_type(file, i) == type) names.insert(gguf_get_tensor_name(file, i));
    }
  });
  return names;
}

uint64_t FileBytes(const std::string& path) {
  uint64_t bytes = 0;
  ForEachPart(path, [&](const std::string& part, const gguf_context*, ggml_context*) {
    std::error_code error;
    const auto size = std::filesystem::file_size(part, error);
    if (!error) bytes += size;
  });
  return bytes;
}

}  // namespace outrider
