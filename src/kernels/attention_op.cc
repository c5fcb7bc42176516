#include "kernels/attention_op.h"

#include <ggml-cpu-impl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention_shape.h"
#include "kernels/work_memory.h"

namespace outrider::kernels {
namespace {

constexpr uint16_t kHidden = 0xFC00;         // minus infinity in half precision
constexpr int kTilesPerThread = 4;           // with fewer tiles, work is cut finer
constexpr size_t kMaxPartBytes = 64u << 20;  // for results of single spans; if they need more, tiles are not cut

bool CanRead(const ggml_tensor* memory) {
  switch (memory->type) {
    case GGML_TYPE_F32:
    case GGML_TYPE_F16:
    case GGML_TYPE_BF16:
      return memory->ne[0] % 16 == 0 && memory->nb[0] == ggml_type_size(memory->type);
    case GGML_TYPE_Q8_0:
      return memory->ne[0] % 32 == 0 && memory->nb[0] == ggml_type_size(memory->type);
    default:
      return false;
  }
}

// How an operation is cut into tiles; the same for all threads.
struct Cut {
  int rows, heads, streams;  // of the operation
  int shared_heads;          // key and value heads
  int group_heads;           // query heads for each of them
  int tile_heads, tile_rows;
  int head_tiles, row_tiles;  // for each key head; for each stream
  int tiles;
  int spans;                       // max number of spans that a row may see
  bool by_span;                    // spans are computed separately and merged afterwards
  size_t part_stride, tile_parts;  // floats

  Cut(const ggml_tensor* op, int threads) {
    const ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2];
    rows = static_cast<int>(q->ne[1]);
    heads = static_cast<int>(q->ne[2]);
    streams = static_cast<int>(q->ne[3]);
    shared_heads = static_cast<int>(k->ne[2]);
    group_heads = heads / shared_heads;
    tile_heads = std::min(group_heads, kTileQueries);
    head_tiles = (group_heads + tile_heads - 1) / tile_heads;
    tile_rows = std::min(rows, std::max(1, kTileQueries / tile_heads));
    const auto count = [&] {
      row_tiles = (rows + tile_rows - 1) / tile_rows;
      tiles = streams * shared_heads * head_tiles * row_tiles;
      return tiles;
    };
    while (count() < kTilesPerThread * threads && tile_rows > 4) tile_rows = (tile_rows + 1) / 2;
    spans = static_cast<int>((k->ne[1] + kSpanCells - 1) / kSpanCells);
    part_stride = static_cast<size_t>(kPartHeader + v->ne[0]);
    tile_parts = part_stride * static_cast<size_t>(tile_rows * tile_heads * spans);
    by_span = threads > 1 && spans > 1 && tiles < kTilesPerThread * threads && PartBytes() <= kMaxPartBytes;
  }

  size_t PartBytes() const { return tile_parts * static_cast<size_t>(tiles) * sizeof(float); }
};

AttentionShape ShapeOf(const ggml_tensor* op) {
  const ggml_tensor *k = op->src[1], *v = op->src[2], *sinks = op->src[4];
  AttentionShape shape{};
  shape.key_values = k->ne[0];
  shape.head_values = v->ne[0];
  shape.key_type = k->type;
  shape.value_type = v->type;
  shape.key_cell_bytes = k->nb[1];
  shape.value_cell_bytes = v->nb[1];
  std::memcpy(&shape.scale, op->op_params, sizeof(float));
  std::memcpy(&shape.softcap, op->op_params + 2, sizeof(float));
  if (shape.softcap != 0.0f) shape.scale /= shape.softcap;
  shape.sinks = sinks ? static_cast<const float*>(sinks->data) : nullptr;
  return shape;
}

// ALiBi's slope of a head, as ggml has it.
float SlopeOf(const ggml_tensor* op, int head, int heads) {
  float max_bias;
  std::memcpy(&max_bias, op->op_params + 1, sizeof max_bias);
  if (max_bias <= 0.0f) return 1.0f;
  const int whole = 1 << static_cast<int>(std::floor(std::log2(heads)));
  return head < whole ? std::pow(std::pow(2.0f, -max_bias / static_cast<float>(whole)), static_cast<float>(head + 1))
                      : std::pow(std::pow(2.0f, -max_bias / 2.0f / static_cast<float>(whole)),
                                 static_cast<float>(2 * (head - whole) + 1));
}

int CountVisible(const uint16_t* mask, int n) {
  int visible = 0;
  for (int i = 0; i < n; ++i) visible += mask[i] != kHidden;
  return visible;
}

bool HasBias(const uint16_t* mask, int n) {
  int biased = 0;
  for (int i = 0; i < n; ++i) biased += mask[i] != kHidden && (mask[i] & 0x7FFF) != 0;
  return biased != 0;
}

int CountDifferences(const uint16_t* a, const uint16_t* b, int n) {
  int different = 0;
  for (int i = 0; i < n; ++i) different += (a[i] == kHidden) != (b[i] == kHidden);
  return different;
}

// The cells that some rows of a stream see; the same for all heads.
struct View {
  int n_cells;             // in the list of the row that sees the most cells
  int seen[kTileQueries];  // by row: how many of them, from the first
  bool common;             // each row sees the first cells of that list; else each row needs a list of its own
  bool biased;
};

View FindCells(const uint16_t* const* masks, int n_rows, int memory_cells, int32_t* cells) {
  View view{};
  if (masks[0] == nullptr) {
    for (int i = 0; i < memory_cells; ++i) cells[i] = i;
    view.n_cells = memory_cells;
    view.common = true;
    std::fill_n(view.seen, n_rows, memory_cells);
    return view;
  }
  int widest = 0;
  for (int row = 0; row < n_rows; ++row) {
    view.seen[row] = CountVisible(masks[row], memory_cells);
    if (view.seen[row] > view.seen[widest]) widest = row;
    view.biased = view.biased || HasBias(masks[row], memory_cells);
  }
  for (int i = 0; i < memory_cells; ++i) {
    cells[view.n_cells] = i;
    view.n_cells += masks[widest][i] != kHidden;
  }
  view.common = true;
  for (int row = 0; row < n_rows && view.common; ++row) {
    const int end = view.seen[row] == 0 ? 0 : cells[view.seen[row] - 1] + 1;
    view.common = CountDifferences(masks[row], masks[widest], end) == 0;
  }
  return view;
}

// One thread's work at an operation.
class Worker {
 public:
  Worker(const KernelSet& kernels, const ggml_tensor* op, int threads, int thread, void* memory)
      : kernels_(kernels),
        op_(op),
        cut_(op, threads),
        shape_(ShapeOf(op)),
        memory_cells_(static_cast<int>(op->src[1]->ne[1])) {
    const size_t cell_bytes = InLines(static_cast<size_t>(memory_cells_ + 1) * sizeof(int32_t));
    const size_t own_bytes = cell_bytes + InLines(kernels.attention_scratch_bytes(shape_));
    const size_t parts_at = own_bytes * static_cast<size_t>(threads);
    bytes_ = parts_at + (cut_.by_span ? cut_.PartBytes() : 0) + kCacheLine;
    uint8_t* lines = FirstLine(memory);
    cells_ = reinterpret_cast<int32_t*>(lines + own_bytes * static_cast<size_t>(thread));
    scratch_ = reinterpret_cast<uint8_t*>(cells_) + cell_bytes;
    parts_ = reinterpret_cast<float*>(lines + parts_at);
  }

  size_t bytes() const { return bytes_; }  // for all threads
  const Cut& cut() const { return cut_; }

  void Attend(int index) {
    AttentionTile tile = Describe(index);
    ForRows(index, tile, [&] { kernels_.attend(shape_, tile, scratch_); });
  }

  void AttendSpan(int index, int span) {
    AttentionTile tile = Describe(index);
    tile.parts = PartsOf(index);
    tile.span = span;
    ForRows(index, tile, [&] {
      if (span * kSpanCells < tile.n_cells) return kernels_.attend(shape_, tile, scratch_);
      for (int q = 0; q < tile.n_rows * tile.n_heads; ++q) {  // no visible cells in this span
        tile.parts[static_cast<size_t>(span) * tile.span_stride + static_cast<size_t>(q) * tile.part_stride + 1] = 0.0f;
      }
    });
  }

  void MergeSpans(int index) {
    AttentionTile tile = Describe(index);
    tile.parts = PartsOf(index);
    tile.span = -1;
    kernels_.attend(shape_, tile, scratch_);
  }

 private:
  float* PartsOf(int index) const { return parts_ + cut_.tile_parts * static_cast<size_t>(index); }

  // Tiles of the same rows and different heads have consecutive indexes, so that a thread can reuse the view of the
  // masks.
  AttentionTile Describe(int index) const {
    const ggml_tensor *q = op_->src[0], *k = op_->src[1], *v = op_->src[2], *mask = op_->src[3];
    const int all_heads = cut_.shared_heads * cut_.head_tiles;
    const int shared_head = index % all_heads / cut_.head_tiles, head_tile = index % cut_.head_tiles;
    const int row_tile = index / all_heads % cut_.row_tiles, stream = index / all_heads / cut_.row_tiles;
    const int first_row = row_tile * cut_.tile_rows, first_in_group = head_tile * cut_.tile_heads;
    AttentionTile tile{};
    tile.n_rows = std::min(cut_.tile_rows, cut_.rows - first_row);
    tile.n_heads = std::min(cut_.tile_heads, cut_.group_heads - first_in_group);
    tile.first_head = shared_head * cut_.group_heads + first_in_group;
    tile.keys = RowOf<const uint8_t>(k, 0, shared_head, stream);
    tile.values = RowOf<const uint8_t>(v, 0, shared_head, stream);
    for (int row = 0; row < tile.n_rows; ++row) {
      tile.mask[row] = mask ? RowOf<const uint16_t>(mask, first_row + row, 0, stream % mask->ne[3]) : nullptr;
      for (int head = 0; head < tile.n_heads; ++head) {
        const int query = row * tile.n_heads + head;
        tile.queries[query] = RowOf<const float>(q, first_row + row, tile.first_head + head, stream);
        tile.out[query] = RowOf<float>(op_, tile.first_head + head, first_row + row, stream);
      }
    }
    for (int head = 0; head < tile.n_heads; ++head)
      tile.slopes[head] = SlopeOf(op_, tile.first_head + head, cut_.heads);
    tile.part_stride = cut_.part_stride;
    tile.span_stride = cut_.part_stride * static_cast<size_t>(cut_.tile_rows * cut_.tile_heads);
    tile.n_spans = cut_.spans;
    return tile;
  }

  // Sets the tile's cells and calls `attend`: once for all rows, or for each row separately if they see different
  // cells.
  template <typename Function>
  void ForRows(int index, AttentionTile& tile, Function attend) {
    const int rows_of = index / (cut_.shared_heads * cut_.head_tiles);
    if (rows_of != viewed_rows_ || !view_.common) {
      view_ = FindCells(tile.mask, tile.n_rows, memory_cells_, cells_);
      viewed_rows_ = rows_of;
    }
    if (view_.common) {
      See(view_, tile);
      attend();
      return;
    }
    const AttentionTile whole = tile;
    for (int row = 0; row < whole.n_rows; ++row) {
      tile.n_rows = 1;
      tile.mask[0] = whole.mask[row];
      const int first = row * whole.n_heads;
      std::copy_n(whole.queries + first, whole.n_heads, tile.queries);
      std::copy_n(whole.out + first, whole.n_heads, tile.out);
      if (whole.parts != nullptr) tile.parts = whole.parts + static_cast<size_t>(first) * whole.part_stride;
      See(FindCells(tile.mask, 1, memory_cells_, cells_), tile);
      attend();
    }
  }

  void See(const View& view, AttentionTile& tile) const {
    tile.cells = cells_;
    tile.n_cells = view.n_cells;
    tile.biased = view.biased;
    std::copy_n(view.seen, tile.n_rows, tile.seen);
  }

  const KernelSet& kernels_;
  const ggml_tensor* op_;
  const Cut cut_;
  const AttentionShape shape_;
  const int memory_cells_;
  size_t bytes_;
  int32_t* cells_;
  uint8_t* scratch_;
  float* parts_;
  View view_{};
  int viewed_rows_ = -1;
};

}  // namespace

bool CanAttend(const ggml_tensor* op) {
  if (ggml_is_empty(op)) return false;
  const ggml_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3], *sinks = op->src[4];
  if (q->type != GGML_TYPE_F32 || q->nb[0] != sizeof(float) || op->type != GGML_TYPE_F32 || !CanRead(k) ||
      !CanRead(v)) {
    return false;
  }
  if (mask != nullptr && (mask->type != GGML_TYPE_F16 || mask->nb[0] != sizeof(uint16_t) || mask->ne[2] != 1))
    return false;
  if (sinks != nullptr && sinks->type != GGML_TYPE_F32) return false;
  return k->ne[1] > 0 && k->ne[2] == v->ne[2] && k->ne[3] == q->ne[3] && v->ne[3] == q->ne[3] &&
         q->ne[2] % k->ne[2] == 0 && v->ne[1] == k->ne[1] && k->ne[1] < INT32_MAX;
}

size_t AttentionWorkBytes(const KernelSet& kernels, const ggml_tensor* op, int threads) {
  return Worker(kernels, op, threads, 0, nullptr).bytes();
}

void ComputeAttention(const KernelSet& kernels, const ggml_compute_params* params, ggml_tensor* op) {
  Worker worker(kernels, op, params->nth, params->ith, params->wdata);
  GGML_ASSERT(worker.bytes() <= params->wsize);
  const Cut& cut = worker.cut();
  const auto share = [&](int jobs, auto job) {
    if (params->ith == 0) ggml_threadpool_chunk_set(params->threadpool, params->nth);
    ggml_barrier(params->threadpool);
    for (int i = params->ith; i < jobs; i = ggml_threadpool_chunk_add(params->threadpool, 1)) job(i);
  };
  if (!cut.by_span) return share(cut.tiles, [&](int i) { worker.Attend(i); });
  share(cut.tiles * cut.spans, [&](int i) { worker.AttendSpan(i / cut.spans, i % cut.spans); });
  ggml_barrier(params->threadpool);
  share(cut.tiles, [&](int i) { worker.MergeSpans(i); });
}

}  // namespace outrider::kernels
