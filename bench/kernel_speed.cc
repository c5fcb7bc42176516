// How fast our kernels are beside ggml's, in one run and interleaved: products of one weight type and shape with 1 to
// 16 columns, and attention over a memory of some depth. Weights are cycled through so much memory that caches do not
// help.
//
//   bench/kernel_speed [--threads 2] [--set avx2] [--type q4_0]… [--shape 1152x3072]… [--cells 1024]… [--rounds 5]
#include <fmt/format.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/kernel_set.h"
#include "kernels/layout.h"
#include "kernels/operation.h"
#include "kernels/plugin.h"

namespace {

using namespace outrider::kernels;

struct Options {
  int threads = 2;
  int rounds = 5;
  std::vector<ggml_type> types;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::vector<int64_t> cells;
  std::vector<int64_t> rows;  // of attention
};

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Reading memory with all threads, GB/s: the most that one column can do.
double ReadBandwidth(int threads) {
  constexpr size_t kWords = size_t{32} << 20;  // 256 MB for each thread
  std::vector<std::vector<uint64_t>> memory(static_cast<size_t>(threads), std::vector<uint64_t>(kWords, 1));
  double best = 1e9;
  for (int round = 0; round < 4; ++round) {
    best = std::min(best, SecondsOf([&] {
                      std::vector<std::thread> readers;
                      for (const std::vector<uint64_t>& words : memory) {
                        readers.emplace_back([&words] {
                          uint64_t sums[8] = {};
                          for (size_t i = 0; i < kWords; i += 8) {
                            for (size_t j = 0; j < 8; ++j) sums[j] += words[i + j];
                          }
                          volatile uint64_t sink =
                              sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
                          (void)sink;
                        });
                      }
                      for (std::thread& reader : readers) reader.join();
                    }));
  }
  return static_cast<double>(threads) * kWords * sizeof(uint64_t) / best / 1e9;
}

// Dot products on registers with all threads, GMAC/s: the most that many columns can do.
double PeakOfDots(int threads) {
  const KernelSet* const* set = KernelSetsOfThisCpu();
  while (*set != nullptr && InstructionSet() != (*set)->name) ++set;
  if (*set == nullptr) return 0;
  constexpr int64_t kRounds = 20'000'000;
  std::vector<int64_t> products(static_cast<size_t>(threads));
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    best = std::min(best, SecondsOf([&] {
                      std::vector<std::thread> workers;
                      for (int64_t& count : products) {
                        workers.emplace_back([&count, spin = (*set)->spin_dots] {
                          int32_t sum = 0;
                          uint8_t values[64];
                          for (uint8_t& value : values) value = static_cast<uint8_t>(std::rand() % 16);
                          count = spin(kRounds, values, &sum);
                          volatile int32_t sink = sum;
                          (void)sink;
                        });
                      }
                      for (std::thread& worker : workers) worker.join();
                    }));
  }
  return static_cast<double>(std::accumulate(products.begin(), products.end(), int64_t{0})) / best / 1e9;
}

// Many products with the same columns, one after the other, as the layers of a model are.
class Products {
 public:
  Products(ggml_backend_buffer_type_t where, ggml_type type, int64_t row_values, int64_t rows, int threads)
      : backend_(ggml_backend_cpu_init()), row_values_(row_values) {
    ggml_backend_cpu_set_n_threads(backend_, threads);
    const std::vector<uint8_t> weights = AnyWeights(type, row_values * rows, 1);
    copies_ = std::max<size_t>(1, kMinBytes / weights.size());
    context_ = ggml_init({(copies_ + 64) * ggml_tensor_overhead() * 40 + (1 << 20), nullptr, true});
    for (size_t i = 0; i < copies_; ++i) weights_.push_back(ggml_new_tensor_2d(context_, type, row_values, rows));
    for (ggml_tensor* tensor : weights_) Place(where, tensor, weights.data());
  }
  ~Products() {
    for (ggml_backend_buffer_t buffer : buffers_) ggml_backend_buffer_free(buffer);
    ggml_free(context_);
    ggml_backend_free(backend_);
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void Prepare(const std::vector<int>& widths) {
    for (int columns : widths) {
      const std::vector<float> x = RandomFloats(static_cast<size_t>(row_values_ * columns), 2);
      ggml_tensor* in = ggml_new_tensor_2d(context_, GGML_TYPE_F32, row_values_, columns);
      Place(ggml_backend_cpu_buffer_type(), in, x.data());
      ggml_cgraph* graph = ggml_new_graph_custom(context_, copies_ + 8, false);
      ggml_tensor* out = nullptr;
      for (ggml_tensor* w : weights_) {
        ggml_tensor* y = ggml_mul_mat(context_, w, in);
        if (out == nullptr) {
          Place(ggml_backend_cpu_buffer_type(), y, nullptr);
          out = y;
        } else {
          ggml_backend_tensor_alloc(out->buffer, y, out->data);
        }
        ggml_build_forward_expand(graph, y);
      }
      graphs_.push_back(graph);
    }
  }
  void Compute(size_t which) { ggml_backend_graph_compute(backend_, graphs_[which]); }
  size_t copies() const { return copies_; }

 private:
  static constexpr size_t kMinBytes = 160 << 20;
  void Place(ggml_backend_buffer_type_t where, ggml_tensor* tensor, const void* data) {
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(where, ggml_backend_buft_get_alloc_size(where, tensor));
    buffers_.push_back(buffer);
    ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
    if (data != nullptr) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
  }

  ggml_backend_t backend_;
  ggml_context* context_;
  int64_t row_values_;
  size_t copies_;
  std::vector<ggml_tensor*> weights_;
  std::vector<ggml_backend_buffer_t> buffers_;
  std::vector<ggml_cgraph*> graphs_;
};

void CompareProducts(const Options& options) {
  const std::vector<int> widths = {1, 2, 3, 4, 5, 6, 8, 12, 16, 64, 256};
  for (ggml_type type : options.types) {
    for (const auto& [row_values, rows] : options.shapes) {
      if (row_values % BlockValues(type) != 0) continue;
      ggml_backend_buffer_type_t place = GgmlBufferType(type, row_values, rows);
      Products ggml(place, type, row_values, rows, options.threads);
      Products ours(BufferType(), type, row_values, rows, options.threads);
      ggml.Prepare(widths);
      ours.Prepare(widths);
      std::vector<double> best_ggml(widths.size(), 1e9), best_ours(widths.size(), 1e9);
      for (int round = 0; round < options.rounds; ++round) {
        for (size_t i = 0; i < widths.size(); ++i) {
          best_ggml[i] = std::min(best_ggml[i], SecondsOf([&] { ggml.Compute(i); }));
          best_ours[i] = std::min(best_ours[i], SecondsOf([&] { ours.Compute(i); }));
        }
      }
      fmt::print("\n{} {}x{}, against ggml's {}\n", ggml_type_name(type), row_values, rows,
                 ggml_backend_buft_name(place));
      fmt::print(
          "| columns | ggml ms | ours ms | ggml / ours | T(k)/T(1) ggml | ours | GB/s | GMAC/s "
          "|\n|---|---|---|---|---|---|---|---|\n");
      const double bytes = static_cast<double>(ggml_row_size(type, row_values)) * static_cast<double>(rows);
      const auto copies = static_cast<double>(ours.copies());
      for (size_t i = 0; i < widths.size(); ++i) {
        const double own = best_ours[i] / copies, theirs = best_ggml[i] / copies;
        fmt::print("| {} | {:.3f} | {:.3f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} | {:.0f} |\n", widths[i], 1e3 * theirs,
                   1e3 * own, theirs / own, best_ggml[i] / best_ggml[0], best_ours[i] / best_ours[0], bytes / own / 1e9,
                   static_cast<double>(row_values * rows * widths[i]) / own / 1e9);
      }
    }
  }
}

// The attention of several layers, one after the other.
class Layers {
 public:
  static constexpr int kCount = 24;
  static constexpr int64_t kHeadValues = 64, kHeads = 18, kSharedHeads = 6;

  Layers(ggml_type type, int64_t rows, int64_t cells, int threads) : backend_(ggml_backend_cpu_init()) {
    ggml_backend_cpu_set_n_threads(backend_, threads);
    context_ = ggml_init({64 << 20, nullptr, true});
    ggml_tensor* q = New(GGML_TYPE_F32, rows, kHeads);
    ggml_tensor* mask = ggml_new_tensor_4d(context_, GGML_TYPE_F16, cells, rows, 1, 1);
    std::vector<ggml_tensor*> memory;
    for (int i = 0; i < 2 * kCount; ++i) memory.push_back(New(type, cells, kSharedHeads));
    buffer_ = ggml_backend_alloc_ctx_tensors(context_, backend_);
    ggml_backend_buffer_clear(buffer_, 0);
    std::vector<ggml_fp16_t> halves;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t cell = 0; cell < cells; ++cell) {
        halves.push_back(ggml_fp32_to_fp16(cell <= cells - rows + row ? 0.0f : -INFINITY));
      }
    }
    ggml_backend_tensor_set(mask, halves.data(), 0, ggml_nbytes(mask));
    graph_ = ggml_new_graph(context_);
    for (int i = 0; i < kCount; ++i) {
      ggml_build_forward_expand(
          graph_, ggml_flash_attn_ext(context_, q, memory[2 * i], memory[2 * i + 1], mask, 0.125f, 0.0f, 0.0f));
    }
    results_ = ggml_backend_alloc_ctx_tensors(context_, backend_);
  }
  ~Layers() {
    ggml_backend_buffer_free(results_);
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
    ggml_backend_free(backend_);
  }
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  void Compute() { ggml_backend_graph_compute(backend_, graph_); }

 private:
  ggml_tensor* New(ggml_type type, int64_t n, int64_t heads) {
    return ggml_new_tensor_4d(context_, type, kHeadValues, n, heads, 1);
  }
  ggml_backend_t backend_;
  ggml_context* context_;
  ggml_backend_buffer_t buffer_ = nullptr, results_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
};

void CompareAttention(const Options& options) {
  for (int64_t cells : options.cells) {
    for (ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0}) {
      fmt::print(
          "\nattention, {} heads of {} over {} shared, {} cells of {}\n| rows | ggml ms | ours ms | ggml / ours "
          "|\n|---|---|---|---|\n",
          Layers::kHeads, Layers::kHeadValues, Layers::kSharedHeads, cells, ggml_type_name(type));
      for (int64_t rows : options.rows) {
        if (rows > cells) continue;
        Layers layers(type, rows, cells, options.threads);
        double best[2] = {1e9, 1e9};
        for (int round = 0; round < options.rounds; ++round) {
          for (int own : {0, 1}) {
            const auto hold = AttentionHold::Take(own == 1);
            best[own] = std::min(best[own], SecondsOf([&] { layers.Compute(); }));
          }
        }
        fmt::print("| {} | {:.3f} | {:.3f} | {:.2f} |\n", rows, 1e3 * best[0] / Layers::kCount,
                   1e3 * best[1] / Layers::kCount, best[0] / best[1]);
      }
    }
  }
}

ggml_type TypeOf(const std::string& name) {
  for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
    const char* known = ggml_type_name(static_cast<ggml_type>(type));
    if (known != nullptr && name == known) return static_cast<ggml_type>(type);
  }
  fmt::print(stderr, "unknown type '{}'\n", name);
  std::exit(2);
}

// ggml tells of every tensor it reorders.
void Silence(ggml_log_level, const char*, void*) {}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  ggml_log_set(Silence, nullptr);
  Install();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--threads") {
      options.threads = std::stoi(value);
    } else if (flag == "--rounds") {
      options.rounds = std::stoi(value);
    } else if (flag == "--type") {
      options.types.push_back(TypeOf(value));
    } else if (flag == "--cells") {
      options.cells.push_back(std::stoll(value));
    } else if (flag == "--rows") {
      options.rows.push_back(std::stoll(value));
    } else if (flag == "--shape") {
      options.shapes.emplace_back(std::stoll(value), std::stoll(value.substr(value.find('x') + 1)));
    } else if (flag != "--set" || !UseInstructionSet(value)) {
      fmt::print(stderr, "unknown flag '{}', or no such kernels '{}' on this CPU\n", flag, value);
      return 2;
    }
  }
  const bool everything = options.types.empty() && options.cells.empty();
  if (everything) {
    const std::span<const ggml_type> types = kTypesWithLayout;
    options.types.assign(types.begin(), types.end());
    options.cells = {128, 1024, 4096};
  }
  if (options.rows.empty()) options.rows = {1, 2, 4, 8, 16, 128};
  if (options.shapes.empty()) options.shapes = {{1536, 4608}};
  fmt::print(
      "kernels: {}, {} threads; memory is read with {:.1f} GB/s, bytes are multiplied with {:.0f} GMAC/s at most\n",
      InstructionSet(), options.threads, ReadBandwidth(options.threads), PeakOfDots(options.threads));
  CompareProducts(options);
  CompareAttention(options);
}
