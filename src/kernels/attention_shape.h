// What the attention kernels are given: the shape of an operation, and a tile of it small enough for one thread.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

inline constexpr int kBlockCells = 64;   // cells whose keys and values are unpacked at once
inline constexpr int kSpanCells = 256;   // visible cells of a row after which results are merged
inline constexpr int kTileQueries = 32;  // max rows times heads of a tile
inline constexpr int kPartHeader = 16;   // floats of a partial result before its values

struct AttentionShape {
  int64_t key_values;   // values of a key, a multiple of 16; of Q8_0, of 32
  int64_t head_values;  // values of a value, likewise
  ggml_type key_type;   // F32, F16, BF16, Q8_0
  ggml_type value_type;
  size_t key_cell_bytes;  // from one cell to the next
  size_t value_cell_bytes;
  float scale;
  float softcap;       // 0 = none; `scale` is then divided by it
  const float* sinks;  // by head; or null
};

struct SpanResult {
  float largest;  // score
  float sum;      // of e^(score - largest)
};

// Rows of one sequence and heads that share a key and value head. Query q is row q / n_heads and head first_head + q
// mod n_heads.
struct AttentionTile {
  const uint8_t* keys;  // of the shared head: its cell 0
  const uint8_t* values;
  int n_rows, n_heads, first_head;
  const float* queries[kTileQueries];
  float* out[kTileQueries];

  const int32_t* cells;  // ascending: those of the row that sees the most cells
  int n_cells;
  int seen[kTileQueries];  // by row: how many of `cells`, from the first, it sees

  bool biased;                         // scores get slope · mask
  const uint16_t* mask[kTileQueries];  // by row, over all cells
  float slopes[kTileQueries];          // by head of the tile

  // Partial results of single spans, for merging: `parts + span · span_stride + q · part_stride`. Null: the tile is
  // not cut into spans.
  float* parts;
  size_t part_stride, span_stride;
  int span;  // the one to compute; -1 = merge all
  int n_spans;
};

}  // namespace outrider::kernels
