#include "kernels/matmul_op.h"

#include <ggml-cpu-impl.h>

#include <algorithm>
#include <cstring>

#include "kernels/layout.h"
#include "kernels/work_memory.h"

namespace outrider::kernels {
namespace {

constexpr int64_t kChunksPerThread = 8, kChunksPerThreadOfMany = 24;

// The number of columns of the panel that starts at column `first` of `columns`: as many as the kernels can take, and
// never 9 to 15.
int PanelWidth(const MatmulKernels& kernels, int64_t first, int64_t columns) {
  const int64_t left = columns - first;
  if (left >= kernels.panel_columns) return kernels.panel_columns;
  return static_cast<int>(std::min<int64_t>(left, 8));
}

size_t PanelBytes(const MatmulKernels& kernels, int64_t blocks, int64_t columns) {
  return kernels.column_block_bytes * static_cast<size_t>(blocks * columns);
}

// One matrix times some of the operation's columns. The columns of each product are divided into panels separately, so
// that a panel belongs to one matrix.
struct Product {
  const uint8_t* weights;  // tiles
  int64_t first_column;    // in the order of the panels
  int64_t columns;
};

// Matrix `i` of those that lie one after the other in tiles.
const uint8_t* MatrixOf(const ggml_tensor* weights, int64_t i) {
  return static_cast<const uint8_t*>(weights->data) +
         static_cast<size_t>(i) * MatrixBytes(weights->type, weights->ne[0], weights->ne[1]);
}

// MUL_MAT: columns in their order in memory. Each plane of columns is multiplied with one matrix. If there are fewer
// matrices than planes, several consecutive planes have the same matrix; a single matrix is used for all planes.
class EqualShares {
 public:
  explicit EqualShares(const ggml_tensor* op) : op_(op) {}
  int64_t products() const {
    const int64_t matrices = op_->src[0]->ne[2];
    return matrices == 1 ? 1 : matrices * op_->src[1]->ne[3];
  }
  Product ProductOf(int64_t p) const {
    const int64_t share = ggml_nrows(op_->src[1]) / products();
    return {MatrixOf(op_->src[0], p % op_->src[0]->ne[2]), p * share, share};
  }
  const float* In(int64_t column) const { return Row<const float>(op_->src[1], column); }
  float* Out(int64_t column) const { return Row<float>(op_, column); }

 private:
  template <typename T>
  static T* Row(const ggml_tensor* t, int64_t i) {
    return RowOf<T>(t, i % t->ne[1], i / t->ne[1] % t->ne[2], i / (t->ne[1] * t->ne[2]));
  }
  const ggml_tensor* op_;
};

// MUL_MAT_ID: a column is a pair of a token and one of its experts; columns are ordered by expert.
struct Choice {
  int32_t slot;  // which of the token's experts
  int32_t token;
};
struct Expert {
  int32_t index, first_choice;
};
// Experts that somebody chose, in the order in which they lie in memory; the one after the last has the number of
// choices.
class ByExpert {
 public:
  ByExpert(const ggml_tensor* op, const Choice* choices, const Expert* experts, int32_t chosen)
      : op_(op), choices_(choices), experts_(experts), chosen_(chosen) {}
  int64_t products() const { return chosen_; }
  Product ProductOf(int64_t i) const {
    return {MatrixOf(op_->src[0], experts_[i].index), experts_[i].first_choice,
            experts_[i + 1].first_choice - experts_[i].first_choice};
  }
  const float* In(int64_t c) const {
    return RowOf<const float>(op_->src[1], choices_[c].slot % op_->src[1]->ne[1], choices_[c].token, 0);
  }
  float* Out(int64_t c) const { return RowOf<float>(op_, choices_[c].slot, choices_[c].token, 0); }

 private:
  const ggml_tensor* op_;
  const Choice* choices_;
  const Expert* experts_;
  int32_t chosen_;
};

// Quantises one thread's share of the columns of a product.
template <typename Columns>
void Quantize(const MatmulKernels& kernels, const Product& product, int64_t blocks, const Columns& columns,
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

template <typename Columns>
void MultiplyTiles(const MatmulKernels& kernels, const Product& product, int64_t blocks, int64_t rows,
                   const Columns& columns, const uint8_t* panels, int64_t first_tile, int64_t last_tile) {
  const size_t tile_bytes = TileBytes(kernels.type, blocks * kernels.block_values);
  for (int64_t tile = first_tile; tile < last_tile; ++tile) {
    const uint8_t* weights = product.weights + static_cast<size_t>(tile) * tile_bytes;
    for (int64_t first = 0; first < product.columns;) {
      const int width = PanelWidth(kernels, first, product.columns);
      // The last tile may have more rows than the result: then these are computed elsewhere, and the others copied.
      const int64_t rows_here = std::min<int64_t>(kTileRows, rows - tile * kTileRows);
      float whole[kMaxPanelColumns][kTileRows];
      float *out[kMaxPanelColumns], *computed[kMaxPanelColumns];
      for (int c = 0; c < width; ++c) {
        out[c] = columns.Out(product.first_column + first + c) + tile * kTileRows;
        computed[c] = rows_here == kTileRows ? out[c] : whole[c];
      }
      kernels.multiply[width](weights, blocks, panels + PanelBytes(kernels, blocks, product.first_column + first),
                              computed);
      for (int c = 0; c < width && rows_here < kTileRows; ++c) std::copy_n(whole[c], rows_here, out[c]);
      first += width;
    }
  }
}

template <typename Columns>
void MultiplyAll(const MatmulKernels& kernels, const ggml_compute_params* params, const ggml_tensor* op,
                 const Columns& columns, uint8_t* panels) {
  const ggml_tensor* w = op->src[0];
  const int64_t blocks = w->ne[0] / kernels.block_values, tiles = TilesOf(w->ne[1]);
  for (int64_t p = 0; p < columns.products(); ++p) {
    Quantize(kernels, columns.ProductOf(p), blocks, columns, panels, params->ith, params->nth);
  }
  if (params->ith == 0) ggml_threadpool_chunk_set(params->threadpool, params->nth);
  ggml_barrier(params->threadpool);
  // A thread takes some tiles of one matrix at a time. Matrices of a mixture are small, so several make one thread's
  // share, and small pieces at the end let all threads end together.
  const int64_t products = columns.products(), all_tiles = tiles * products;
  const int64_t wanted = (products > 1 ? kChunksPerThreadOfMany : kChunksPerThread) * params->nth;
  const int64_t step = std::clamp<int64_t>((all_tiles + wanted - 1) / wanted, 1, tiles);
  const int64_t chunks = (tiles + step - 1) / step;  // of a matrix
  for (int64_t chunk = params->ith; chunk < chunks * products;
       chunk = ggml_threadpool_chunk_add(params->threadpool, 1)) {
    const int64_t first = chunk % chunks * step;
    MultiplyTiles(kernels, columns.ProductOf(chunk / chunks), blocks, w->ne[1], columns, panels, first,
                  std::min(tiles, first + step));
  }
}

// Work memory of MUL_MAT_ID: the choices ordered by expert, then the experts that were chosen and their number, then
// the panels.
struct ExpertWork {
  int64_t experts, pairs;
  size_t experts_at, chosen_at, panels_at;
  explicit ExpertWork(const ggml_tensor* op)
      : experts(op->src[0]->ne[2]), pairs(op->src[2]->ne[0] * op->src[2]->ne[1]) {
    experts_at = InLines(static_cast<size_t>(pairs) * sizeof(Choice));
    chosen_at = experts_at + static_cast<size_t>(experts + 1) * sizeof(Expert);
    panels_at = InLines(chosen_at + sizeof(int32_t));
  }
};

// Returns how many experts were chosen.
int32_t OrderByExpert(const ggml_tensor* ids, int64_t all, Choice* choices, Expert* experts) {
  const auto expert_of = [&](int64_t slot, int64_t token) {
    int32_t expert;
    std::memcpy(&expert, RowOf<const char>(ids, token, 0, 0) + slot * static_cast<int64_t>(ids->nb[0]), sizeof expert);
    GGML_ASSERT(expert >= 0 && expert < all);
    return expert;
  };
  for (int64_t e = 0; e <= all; ++e) experts[e] = {static_cast<int32_t>(e), 0};
  for (int64_t token = 0; token < ids->ne[1]; ++token) {
    for (int64_t slot = 0; slot < ids->ne[0]; ++slot) ++experts[expert_of(slot, token) + 1].first_choice;
  }
  for (int64_t e = 0; e < all; ++e) experts[e + 1].first_choice += experts[e].first_choice;
  for (int64_t token = 0; token < ids->ne[1]; ++token) {
    for (int64_t slot = 0; slot < ids->ne[0]; ++slot) {
      // While expert e is filled, its first choice moves to that of e + 1; the loop below moves all of them back.
      const int32_t at = experts[expert_of(slot, token)].first_choice++;
      choices[at] = {static_cast<int32_t>(slot), static_cast<int32_t>(token)};
    }
  }
  for (int64_t e = all; e > 0; --e) experts[e].first_choice = experts[e - 1].first_choice;
  experts[0].first_choice = 0;
  int32_t chosen = 0;
  for (int64_t e = 0; e < all; ++e) {
    if (experts[e + 1].first_choice > experts[e].first_choice) experts[chosen++] = experts[e];
  }
  experts[chosen] = experts[all];
  return chosen;
}

void MultiplyByExperts(const MatmulKernels& kernels, const ggml_compute_params* params, ggml_tensor* op) {
  const ExpertWork work(op);
  uint8_t* memory = FirstLine(params->wdata);
  auto* choices = reinterpret_cast<Choice*>(memory);
  auto* experts = reinterpret_cast<Expert*>(memory + work.experts_at);
  auto* chosen = reinterpret_cast<int32_t*>(memory + work.chosen_at);
  if (params->ith == 0) *chosen = OrderByExpert(op->src[2], work.experts, choices, experts);
  ggml_barrier(params->threadpool);
  MultiplyAll(kernels, params, op, ByExpert(op, choices, experts, *chosen), memory + work.panels_at);
}

}  // namespace

bool CanMultiply(const ggml_tensor* op) {
  const ggml_tensor *w = op->src[0], *x = op->src[1];
  if (!HasLayout(w) || x->type != GGML_TYPE_F32 || x->nb[0] != sizeof(float) || op->type != GGML_TYPE_F32) return false;
  if (op->op == GGML_OP_MUL_MAT) return x->ne[2] % w->ne[2] == 0;
  return op->op == GGML_OP_MUL_MAT_ID && x->ne[3] == 1 && op->src[2]->type == GGML_TYPE_I32;
}

size_t MatmulWorkBytes(const KernelSet& set, const ggml_tensor* op) {
  const MatmulKernels& kernels = *set.ForType(op->src[0]->type);
  const int64_t blocks = op->src[0]->ne[0] / kernels.block_values;
  if (op->op == GGML_OP_MUL_MAT) return PanelBytes(kernels, blocks, ggml_nrows(op->src[1])) + kCacheLine;
  const ExpertWork work(op);
  return work.panels_at + PanelBytes(kernels, blocks, work.pairs) + kCacheLine;
}

void ComputeMatmul(const KernelSet& set, const ggml_compute_params* params, ggml_tensor* op) {
  GGML_ASSERT(CanMultiply(op) && MatmulWorkBytes(set, op) <= params->wsize);
  const MatmulKernels& kernels = *set.ForType(op->src[0]->type);
  if (op->op == GGML_OP_MUL_MAT) {
    MultiplyAll(kernels, params, op, EqualShares(op), FirstLine(params->wdata));
  } else {
    MultiplyByExperts(kernels, params, op);
  }
}

}  // namespace outrider::kernels
