#include "kernels/attention_op.h"

#include <ggml-cpu-impl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/attention_shape.h"

namespace outrider::kernels {
namespace {

constexpr uint16_t kHidden = 0xFC00;  // minus infinity in half precision
constexpr int kTilesPerThread = 4;    // below that many, work is cut finer
constexpr size_t kLine = 64;

size_t RoundUp(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

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

// How an operation is cut, the same for all threads.
struct Cut {
  int rows, heads, streams;  // of the operation
  int shared_heads;          // key and value heads
  int group_heads;           // query heads for each of them
  int tile_heads, tile_rows;
  int head_tiles, row_tiles;  // for each key head; for each stream
  int tiles;
  int spans;                       // a row may see at most
  bool by_span;                    // spans are computed by themselves and merged
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
    by_span = threads > 1 && spans > 1 && tiles < kTilesPerThread * threads;
    part_stride = static_cast<size_t>(kPartHeader + v->ne[0]);
    tile_parts = part_stride * static_cast<size_t>(tile_rows * tile_heads * spans);
  }
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

template <typename T>
const T* At(const ggml_tensor* tensor, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<const T*>(static_cast<const char*>(tensor->data) + i1 * static_cast<int64_t>(tensor->nb[1]) +
                                    i2 * static_cast<int64_t>(tensor->nb[2]) +
                                    i3 * static_cast<int64_t>(tensor->nb[3]));
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

// The cells the tile's rows see, into tile.cells. False if the rows do not see the same cells up to where each one
// ends.
bool FindCells(AttentionTile& tile, int memory_cells, int32_t* cells) {
  tile.cells = cells;
  tile.biased = false;
  if (tile.mask[0] == nullptr) {
    for (int i = 0; i < memory_cells; ++i) cells[i] = i;
    tile.n_cells = memory_cells;
    std::fill_n(tile.seen, tile.n_rows, memory_cells);
    return true;
  }
  int most = 0;
  for (int row = 0; row < tile.n_rows; ++row) {
    tile.seen[row] = CountVisible(tile.mask[row], memory_cells);
    if (tile.seen[row] > tile.seen[most]) most = row;
    tile.biased = tile.biased || HasBias(tile.mask[row], memory_cells);
  }
  tile.n_cells = 0;
  for (int i = 0; i < memory_cells; ++i) {
    cells[tile.n_cells] = i;
    tile.n_cells += tile.mask[most][i] != kHidden;
  }
  for (int row = 0; row < tile.n_rows; ++row) {
    if (tile.seen[row] == 0) continue;
    const int end = cells[tile.seen[row] - 1] + 1;
    if (CountDifferences(tile.mask[row], tile.mask[most], end) != 0) return false;
  }
  return true;
}

class Work {
 public:
  Work(const KernelSet& kernels, const ggml_tensor* op, int threads, void* memory)
      : kernels_(kernels), op_(op), cut_(op, threads), shape_(ShapeOf(op)), memory_(static_cast<uint8_t*>(memory)) {
    cell_bytes_ = RoundUp(static_cast<size_t>(op->src[1]->ne[1] + 1) * sizeof(int32_t));
    thread_bytes_ = cell_bytes_ + RoundUp(kernels.attention_scratch_bytes(shape_));
    parts_at_ = thread_bytes_ * static_cast<size_t>(threads);
    bytes_ = parts_at_ + (cut_.by_span ? cut_.tile_parts * static_cast<size_t>(cut_.tiles) * sizeof(float) : 0) + kLine;
  }

  size_t bytes() const { return bytes_; }
  const Cut& cut() const { return cut_; }

  // Computes a tile; of its spans only `span`, if that is not kAll; or merges them.
  static constexpr int kAll = -2, kMerge = -1;
  void Run(int index, int span, int thread) const {
    uint8_t* own = Aligned() + thread_bytes_ * static_cast<size_t>(thread);
    auto* cells = reinterpret_cast<int32_t*>(own);
    AttentionTile tile;
    int first_row, stream;
    Describe(index, span, tile, first_row, stream);
    if (span == kMerge) return kernels_.attend(shape_, tile, own + cell_bytes_);
    const int memory_cells = static_cast<int>(op_->src[1]->ne[1]);
    if (FindCells(tile, memory_cells, cells)) return Attend(tile, own);
    const AttentionTile whole = tile;
    for (int row = 0; row < whole.n_rows; ++row) {
      TakeRow(whole, row, tile);
      FindCells(tile, memory_cells, cells);
      Attend(tile, own);
    }
  }

 private:
  uint8_t* Aligned() const { return reinterpret_cast<uint8_t*>(RoundUp(reinterpret_cast<size_t>(memory_))); }

  void Attend(AttentionTile& tile, uint8_t* own) const {
    if (tile.parts != nullptr && tile.span * kSpanCells >= tile.n_cells) {
      for (int q = 0; q < tile.n_rows * tile.n_heads; ++q) {  // nothing to see there
        float* part =
            tile.parts + static_cast<size_t>(tile.span) * tile.span_stride + static_cast<size_t>(q) * tile.part_stride;
        part[1] = 0.0f;
      }
      return;
    }
    kernels_.attend(shape_, tile, own + cell_bytes_);
  }

  void Describe(int index, int span, AttentionTile& tile, int& first_row, int& stream) const {
    const ggml_tensor *q = op_->src[0], *k = op_->src[1], *v = op_->src[2], *mask = op_->src[3];
    const int row_tile = index % cut_.row_tiles, head_tile = index / cut_.row_tiles % cut_.head_tiles;
    const int shared_head = index / (cut_.row_tiles * cut_.head_tiles) % cut_.shared_heads;
    stream = index / (cut_.row_tiles * cut_.head_tiles * cut_.shared_heads);
    first_row = row_tile * cut_.tile_rows;
    tile.n_rows = std::min(cut_.tile_rows, cut_.rows - first_row);
    const int first_in_group = head_tile * cut_.tile_heads;
    tile.n_heads = std::min(cut_.tile_heads, cut_.group_heads - first_in_group);
    tile.first_head = shared_head * cut_.group_heads + first_in_group;
    tile.keys = At<uint8_t>(k, 0, shared_head, stream);
    tile.values = At<uint8_t>(v, 0, shared_head, stream);
    for (int row = 0; row < tile.n_rows; ++row) {
      tile.mask[row] = mask ? At<uint16_t>(mask, first_row + row, 0, stream % mask->ne[3]) : nullptr;
      for (int head = 0; head < tile.n_heads; ++head) {
        const int query = row * tile.n_heads + head;
        tile.queries[query] = At<float>(q, first_row + row, tile.first_head + head, stream);
        // dst: [value, head, row, stream]
        tile.out[query] = const_cast<float*>(At<float>(op_, tile.first_head + head, first_row + row, stream));
      }
    }
    for (int head = 0; head < tile.n_heads; ++head)
      tile.slopes[head] = SlopeOf(op_, tile.first_head + head, cut_.heads);
    tile.parts = span == kAll
                     ? nullptr
                     : reinterpret_cast<float*>(Aligned() + parts_at_) + cut_.tile_parts * static_cast<size_t>(index);
    tile.part_stride = cut_.part_stride;
    tile.span_stride = cut_.part_stride * static_cast<size_t>(cut_.tile_rows * cut_.tile_heads);
    tile.span = span;
    tile.n_spans = cut_.spans;
  }

  static void TakeRow(const AttentionTile& whole, int row, AttentionTile& tile) {
    tile = whole;
    tile.n_rows = 1;
    tile.mask[0] = whole.mask[row];
    const int first = row * whole.n_heads;
    std::copy_n(whole.queries + first, whole.n_heads, tile.queries);
    std::copy_n(whole.out + first, whole.n_heads, tile.out);
    if (whole.parts != nullptr) tile.parts = whole.parts + static_cast<size_t>(first) * whole.part_stride;
  }

  const KernelSet& kernels_;
  const ggml_tensor* op_;
  const Cut cut_;
  const AttentionShape shape_;
  uint8_t* memory_;
  size_t cell_bytes_, thread_bytes_, parts_at_, bytes_;
};

}  // namespace

bool CanAttend(const ggml_tensor* op) {
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
  return Work(kernels, op, threads, nullptr).bytes();
}

void ComputeAttention(const KernelSet& kernels, const ggml_compute_params* params, ggml_tensor* op) {
  const Work work(kernels, op, params->nth, params->wdata);
  GGML_ASSERT(work.bytes() <= params->wsize);
  const Cut& cut = work.cut();
  const auto run = [&](int jobs, auto job) {
    if (params->ith == 0) ggml_threadpool_chunk_set(params->threadpool, params->nth);
    ggml_barrier(params->threadpool);
    for (int i = params->ith; i < jobs; i = ggml_threadpool_chunk_add(params->threadpool, 1)) job(i);
  };
  if (!cut.by_span) {
    run(cut.tiles, [&](int i) { work.Run(i, Work::kAll, params->ith); });
    return;
  }
  run(cut.tiles * cut.spans, [&](int i) { work.Run(i / cut.spans, i % cut.spans, params->ith); });
  ggml_barrier(params->threadpool);
  run(cut.tiles, [&](int i) { work.Run(i, Work::kMerge, params->ith); });
}

}  // namespace outrider::kernels
