#include "kernels/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "kernels/layout.h"
#include "kernels/operation.h"
#include "kernels/plugin.h"

namespace outrider::kernels {
namespace {

constexpr int kRounds = 5;
constexpr double kTolerance = 1.1;  // ours may take this much longer and are still preferred: measurements are noisy

double Seconds(Operation& operation) {
  const auto start = std::chrono::steady_clock::now();
  operation.Compute();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Best {
  double ours = 1e9, ggml = 1e9;
  bool OursWin() const { return ours <= kTolerance * ggml; }
};

}  // namespace

bool AreFasterFor(ggml_type type) {
  if (InstructionSet().empty() || !HasLayout(type)) return false;
  constexpr int64_t kRowValues = 1024, kRows = 512;
  const std::vector<uint8_t> weights = AnyWeights(type, kRowValues * kRows, 1);  // some types are slow to quantise
  const auto product = [&](ggml_backend_buffer_type_t place, int64_t columns) {
    auto operation = std::make_unique<Operation>();
    ggml_tensor* w = ggml_new_tensor_2d(operation->context(), type, kRowValues, kRows);
    ggml_tensor* x = ggml_new_tensor_2d(operation->context(), GGML_TYPE_F32, kRowValues, columns);
    operation->Place(w, place, weights.data());
    operation->Place(x, RandomFloats(static_cast<size_t>(kRowValues * columns), 2).data());
    operation->SetResult(ggml_mul_mat(operation->context(), w, x));
    return operation;
  };
  for (int64_t columns : {1, 4, 64}) {
    const auto ours = product(BufferType(), columns), ggml = product(GgmlBufferType(type, kRowValues, kRows), columns);
    Best best;
    for (int round = 0; round < kRounds; ++round) {
      best.ours = std::min(best.ours, Seconds(*ours));
      best.ggml = std::min(best.ggml, Seconds(*ggml));
    }
    if (!best.OursWin()) return false;
  }
  return true;
}

bool AreFasterForAttention() {
  if (InstructionSet().empty()) return false;
  constexpr int64_t kHeadValues = 64, kHeads = 6, kSharedHeads = 2, kCells = 512;
  bool win = true;
  for (int64_t rows : {1, 4}) {
    Operation operation;
    ggml_context* context = operation.context();
    ggml_tensor* q = ggml_new_tensor_3d(context, GGML_TYPE_F32, kHeadValues, rows, kHeads);
    ggml_tensor* k = ggml_new_tensor_3d(context, GGML_TYPE_F16, kHeadValues, kCells, kSharedHeads);
    ggml_tensor* v = ggml_new_tensor_3d(context, GGML_TYPE_F16, kHeadValues, kCells, kSharedHeads);
    const std::vector<float> queries = RandomFloats(static_cast<size_t>(ggml_nelements(q)), 3);
    std::vector<ggml_fp16_t> memory(static_cast<size_t>(ggml_nelements(k)));
    const std::vector<float> values = RandomFloats(memory.size(), 4);
    ggml_fp32_to_fp16_row(values.data(), memory.data(), static_cast<int64_t>(memory.size()));
    operation.Place(q, queries.data());
    operation.Place(k, memory.data());
    operation.Place(v, memory.data());
    operation.SetResult(ggml_flash_attn_ext(context, q, k, v, nullptr, 0.125f, 0.0f, 0.0f));
    Best best;
    for (int round = 0; round < kRounds; ++round) {
      for (const bool ours : {true, false}) {
        const auto hold = AttentionHold::Take(ours);
        if (hold == nullptr) return AttentionIsOurs();  // another thread has loaded a model meanwhile
        double& fastest = ours ? best.ours : best.ggml;
        fastest = std::min(fastest, Seconds(operation));
      }
    }
    win = win && best.OursWin();
  }
  return win;
}

}  // namespace outrider::kernels
