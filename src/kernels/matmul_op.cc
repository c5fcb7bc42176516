#include "kernels/matmul_op.h"

#include <ggml-cpu-impl.h>

#include <algorithm>
#include <cstring>

#include "kernels/layout.h"

namespace outrider::kernels {
namespace {

constexpr size_t kLine = 64;
constexpr int64_t kChunksPerThread = 8;

size_t RoundUp(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

uint8_t* Aligned(void* memory) {
  return reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<size_t>(memory)));
}

// Columns of the panel that starts at `first` of `columns`: as wide as kernels are, and never 9 to 15.
int PanelWidth(const MatmulKernels& kernels, int64_t first, int64_t columns) {
  const int64_t left = columns - first;
  if (left >= kernels.panel_columns) return kernels.panel_columns;
  return static_cast<int>(std::min<int64_t>(left, 8));
}

size_t PanelBytes(const MatmulKernels& kernels, int64_t blocks, int64_t columns) {
  return kernels.column_block_bytes * static_cast<size_t>(blocks * columns);
}

char* RowAt(const ggml_tensor* tensor, int64_t i1, int64_t i2, int64_t i3) {
  return static_cast<char*>(tensor->data) + i1 * static_cast<int64_t>(tensor->nb[1]) +
         i2 * static_cast<int64_t>(tensor->nb[2]) + i3 * static_cast<int64_t>(tensor->nb[3]);
}

// One matrix times some columns, which may lie anywhere.
struct Product {
  const uint8_t* weights;  // tiles
  int64_t first_column;    // of the operation's columns in the order of the panels
  int64_t columns;
};

// The columns of an operation, in the order in which they are quantised: where each is read and written.
class Columns {
 public:
  Columns(const ggml_tensor* op) : op_(op) {}
  const float* In(int64_t c) const {
    const ggml_tensor* x = op_->src[1];
    return reinterpret_cast<const float*>(RowAt(x, c % x->ne[1], c / x->ne[1] % x->ne[2], c / (x->ne[1] * x->ne[2])));
  }
  float* Out(int64_t c) const {
    return reinterpret_cast<float*>(
        RowAt(op_, c % op_->ne[1], c / op_->ne[1] % op_->ne[2], c / (op_->ne[1] * op_->ne[2])));
  }

 private:
  const ggml_tensor* op_;
};

// The same for MUL_MAT_ID: pairs of a token and one of the experts it was given to, ordered by expert.
struct Choice {
  int32_t slot;  // which of the token's experts
  int32_t token;
};
class ChosenColumns {
 public:
  ChosenColumns(const ggml_tensor* op, const Choice* choices) : op_(op), choices_(choices) {}
  const float* In(int64_t c) const {
    const ggml_tensor* x = op_->src[1];
    return reinterpret_cast<const float*>(RowAt(x, choices_[c].slot % x->ne[1], choices_[c].token, 0));
  }
  float* Out(int64_t c) const { return reinterpret_cast<float*>(RowAt(op_, choices_[c].slot, choices_[c].token, 0)); }

 private:
  const ggml_tensor* op_;
  const Choice* choices_;
};

// Each product's columns are cut into panels by themselves, so that a panel belongs to one matrix.
template <typename ColumnSet>
void Quantize(const MatmulKernels& kernels, const Product& product, int64_t blocks, const ColumnSet& columns,
              uint8_t* panels, int thread, int threads) {
  const int64_t units = product.columns * blocks;
  const int64_t from = units * thread / threads, to = units * (thread + 1) / threads;
  for (int64_t unit = from; unit < to;) {
    const int64_t column = unit / blocks, block = unit % blocks;
    const int64_t last = std::min(blocks, block + (to - unit));
    int64_t first = column / kernels.panel_columns * kernels.panel_columns;
    int width = PanelWidth(kernels, first, product.columns);
    while (column >= first + width) {
      first += width;
      width = PanelWidth(kernels, first, product.columns);
    }
    kernels.quantize(columns.In(product.first_column + column), block, last,
                     panels + PanelBytes(kernels, blocks, product.first_column + first), width,
                     static_cast<int>(column - first));
    unit += last - block;
  }
}

template <typename ColumnSet>
void Multiply(const MatmulKernels& kernels, const Product& product, int64_t blocks, int64_t row_values,
              const ColumnSet& columns, const uint8_t* panels, int64_t first_tile, int64_t last_tile) {
  const size_t tile_bytes = TileBytes(kernels.type, row_values);
  for (int64_t tile = first_tile; tile < last_tile; ++tile) {
    const uint8_t* weights = product.weights + static_cast<size_t>(tile) * tile_bytes;
    for (int64_t first = 0; first < product.columns;) {
      const int width = PanelWidth(kernels, first, product.columns);
      float* out[kMostPanelColumns];
      for (int c = 0; c < width; ++c) out[c] = columns.Out(product.first_column + first + c) + tile * kTileRows;
      kernels.multiply[width](weights, blocks, panels + PanelBytes(kernels, blocks, product.first_column + first), out);
      first += width;
    }
  }
}

void MultiplyMatrix(const MatmulKernels& kernels, const ggml_compute_params* params, ggml_tensor* op) {
  const ggml_tensor *w = op->src[0], *x = op->src[1];
  const int64_t blocks = w->ne[0] / kernels.block_values, tiles = w->ne[1] / kTileRows;
  const Columns columns(op);
  const Product product{static_cast<const uint8_t*>(w->data), 0, ggml_nrows(x)};
  uint8_t* panels = Aligned(params->wdata);
  Quantize(kernels, product, blocks, columns, panels, params->ith, params->nth);
  if (params->ith == 0) ggml_threadpool_chunk_set(params->threadpool, params->nth);
  ggml_barrier(params->threadpool);
  const int64_t step =
      std::max<int64_t>(1, (tiles + kChunksPerThread * params->nth - 1) / (kChunksPerThread * params->nth));
  for (int64_t chunk = params->ith; chunk * step < tiles; chunk = ggml_threadpool_chunk_add(params->threadpool, 1)) {
    Multiply(kernels, product, blocks, w->ne[0], columns, panels, chunk * step, std::min(tiles, (chunk + 1) * step));
  }
}

// Work memory of MUL_MAT_ID: the choices ordered by expert, where each expert's begin, then the panels.
struct ExpertWork {
  int64_t experts, pairs;
  size_t starts_at, panels_at;
  explicit ExpertWork(const ggml_tensor* op)
      : experts(op->src[0]->ne[2]), pairs(op->src[2]->ne[0] * op->src[2]->ne[1]) {
    starts_at = RoundUp(static_cast<size_t>(pairs) * sizeof(Choice));
    panels_at = starts_at + RoundUp(static_cast<size_t>(experts + 1) * sizeof(int32_t));
  }
};

void OrderByExpert(const ggml_tensor* ids, int64_t experts, Choice* choices, int32_t* starts) {
  const auto expert_of = [&](int64_t slot, int64_t token) {
    int32_t expert;
    std::memcpy(&expert, RowAt(ids, token, 0, 0) + slot * static_cast<int64_t>(ids->nb[0]), sizeof expert);
    GGML_ASSERT(expert >= 0 && expert < experts);
    return expert;
  };
  std::fill_n(starts, experts + 1, 0);
  for (int64_t token = 0; token < ids->ne[1]; ++token) {
    for (int64_t slot = 0; slot < ids->ne[0]; ++slot) ++starts[expert_of(slot, token) + 1];
  }
  for (int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  for (int64_t token = 0; token < ids->ne[1]; ++token) {
    for (int64_t slot = 0; slot < ids->ne[0]; ++slot) {
      // starts[e] walks to the start of e + 1 while e is filled …
      choices[starts[expert_of(slot, token)]++] = {static_cast<int32_t>(slot), static_cast<int32_t>(token)};
    }
  }
  for (int64_t e = experts; e > 0; --e) starts[e] = starts[e - 1];  // … and back
  starts[0] = 0;
}

void MultiplyByExperts(const MatmulKernels& kernels, const ggml_compute_params* params, ggml_tensor* op) {
  const ggml_tensor *w = op->src[0], *ids = op->src[2];
  const int64_t blocks = w->ne[0] / kernels.block_values, tiles = w->ne[1] / kTileRows;
  const ExpertWork work(op);
  uint8_t* memory = Aligned(params->wdata);
  auto* choices = reinterpret_cast<Choice*>(memory);
  auto* starts = reinterpret_cast<int32_t*>(memory + work.starts_at);
  uint8_t* panels = memory + work.panels_at;
  if (params->ith == 0) {
    OrderByExpert(ids, work.experts, choices, starts);
    ggml_threadpool_chunk_set(params->threadpool, params->nth);
  }
  ggml_barrier(params->threadpool);
  const ChosenColumns columns(op, choices);
  const auto product_of = [&](int64_t expert) {
    return Product{static_cast<const uint8_t*>(w->data) + static_cast<size_t>(expert) * w->nb[2], starts[expert],
                   starts[expert + 1] - starts[expert]};
  };
  for (int64_t e = 0; e < work.experts; ++e) {
    Quantize(kernels, product_of(e), blocks, columns, panels, params->ith, params->nth);
  }
  ggml_barrier(params->threadpool);
  const int64_t chunks = kChunksPerThread * params->nth, step = std::max<int64_t>(1, (tiles + chunks - 1) / chunks);
  const int64_t expert_chunks = (tiles + step - 1) / step;
  for (int64_t chunk = params->ith; chunk < expert_chunks * work.experts;
       chunk = ggml_threadpool_chunk_add(params->threadpool, 1)) {
    const Product product = product_of(chunk / expert_chunks);
    if (product.columns == 0) continue;
    const int64_t first = chunk % expert_chunks * step;
    Multiply(kernels, product, blocks, w->ne[0], columns, panels, first, std::min(tiles, first + step));
  }
}

}  // namespace

bool CanMultiply(const ggml_tensor* op) {
  const ggml_tensor *w = op->src[0], *x = op->src[1];
  if (!HasLayout(w) || x->type != GGML_TYPE_F32 || x->nb[0] != sizeof(float) || op->type != GGML_TYPE_F32) return false;
  if (op->op == GGML_OP_MUL_MAT) return w->ne[2] == 1;
  return op->op == GGML_OP_MUL_MAT_ID && x->ne[3] == 1 && op->src[2]->type == GGML_TYPE_I32;
}

size_t MatmulWorkBytes(const KernelSet& set, const ggml_tensor* op) {
  const MatmulKernels& kernels = *set.ForType(op->src[0]->type);
  const int64_t blocks = op->src[0]->ne[0] / kernels.block_values;
  if (op->op == GGML_OP_MUL_MAT) return PanelBytes(kernels, blocks, ggml_nrows(op->src[1])) + kLine;
  const ExpertWork work(op);
  return work.panels_at + PanelBytes(kernels, blocks, work.pairs) + kLine;
}

void ComputeMatmul(const KernelSet& set, const ggml_compute_params* params, ggml_tensor* op) {
  const MatmulKernels& kernels = *set.ForType(op->src[0]->type);
  GGML_ASSERT(MatmulWorkBytes(set, op) <= params->wsize);
  op->op == GGML_OP_MUL_MAT ? MultiplyMatrix(kernels, params, op) : MultiplyByExperts(kernels, params, op);
}

}  // namespace outrider::kernels
