// Attention for few rows, as a template over the vector operations (simd_*.h). The memory of a head is read once for
// all rows of a sequence and all query heads that share it.
//
// The result of a row depends only on that row and on the cells that it sees, in their order. It does not depend on
// other rows, on unused cells in between, or on the number of threads. Cells are processed in blocks of 64 and spans of
// 256 *visible* cells, counted for each row. A span gives a maximum, a sum and a weighted sum of values; spans are
// merged in order. So the result is the same however the spans of a row are distributed among threads.
#pragma once

#include <cmath>

#include "kernels/attention_shape.h"

namespace outrider::kernels {

template <typename S>
struct Attention {
  using Floats = typename S::Floats;
  static constexpr int kLanes = S::kLanes;
  static constexpr int kWide = 4;  // vectors of cells, or of values, that a pass keeps in registers
  static constexpr int kScoreQueries = 3;

  // e^x for x ≤ 0; exactly 0 where x is below the range, -infinity included.
  OUTRIDER_INLINE Floats Exp(Floats x) {
    const Floats low = S::Broadcast(-87.0f);
    const auto tiny = S::Less(x, low);
    const Floats y = S::Max(x, low);
    const auto n = S::Round(S::Multiply(y, S::Broadcast(1.44269504088896341f)));
    const Floats whole = S::ToFloats(n);
    Floats r = S::Fma(whole, S::Broadcast(-0.693359375f), y);
    r = S::Fma(whole, S::Broadcast(2.12194440e-4f), r);
    Floats p = S::Broadcast(1.9875691500e-4f);
    p = S::Fma(p, r, S::Broadcast(1.3981999507e-3f));
    p = S::Fma(p, r, S::Broadcast(8.3334519073e-3f));
    p = S::Fma(p, r, S::Broadcast(4.1665795894e-2f));
    p = S::Fma(p, r, S::Broadcast(1.6666665459e-1f));
    p = S::Fma(p, r, S::Broadcast(5.0000001201e-1f));
    p = S::Fma(S::Multiply(p, r), r, S::Add(r, S::Broadcast(1.0f)));
    return S::Choose(tiny, S::ZeroFloats(), S::ScaleByPower(p, n));
  }
  OUTRIDER_INLINE float Exp(float x) {
    float lanes[kLanes];
    S::Store(lanes, Exp(S::Broadcast(x)));
    return lanes[0];
  }
  OUTRIDER_INLINE Floats Tanh(Floats x) {
    const Floats magnitude = S::Abs(x);
    const Floats e = Exp(S::Multiply(magnitude, S::Broadcast(-2.0f)));
    const Floats one = S::Broadcast(1.0f);
    const Floats t = S::Divide(S::Subtract(one, e), S::Add(one, e));
    return S::Choose(S::Less(x, S::ZeroFloats()), S::Subtract(S::ZeroFloats(), t), t);
  }

  // kLanes values of a row of the memory, from value `at` on.
  template <ggml_type kType>
  OUTRIDER_INLINE Floats LoadCell(const uint8_t* row, int64_t at) {
    if constexpr (kType == GGML_TYPE_F16) {
      return S::LoadHalf(reinterpret_cast<const uint16_t*>(row) + at);
    } else if constexpr (kType == GGML_TYPE_BF16) {
      return S::LoadBrain(reinterpret_cast<const uint16_t*>(row) + at);
    } else if constexpr (kType == GGML_TYPE_Q8_0) {
      const uint8_t* block = row + at / 32 * 34;
      uint16_t half;
      __builtin_memcpy(&half, block, 2);
      return S::Multiply(S::ToFloats(S::LoadI8(reinterpret_cast<const int8_t*>(block) + 2 + at % 32)),
                         S::Broadcast(S::FromHalf(half)));
    } else {
      return S::Load(reinterpret_cast<const float*>(row) + at);
    }
  }

  struct Scratch {
    float* keys;     // [key value][64 cells]
    float* values;   // [64 cells][value]
    float* weights;  // [query][64 cells]
    float* sums;     // [query][value]: of the span
    float* totals;   // [query][value]: of the spans before
    Scratch(uint8_t* at, const AttentionShape& shape) {
      keys = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(at) + 63) & ~uintptr_t{63});
      values = keys + shape.key_values * kBlockCells;
      weights = values + shape.head_values * kBlockCells;
      sums = weights + kTileQueries * kBlockCells;
      totals = sums + kTileQueries * shape.head_values;
    }
  };

  static size_t ScratchBytes(const AttentionShape& shape) {
    return sizeof(float) * static_cast<size_t>((shape.key_values + shape.head_values) * kBlockCells +
                                               kTileQueries * (kBlockCells + 2 * shape.head_values)) +
           64;
  }

  // Loads the keys of `n` cells, transposed. The last vector is filled up with copies of the last cell.
  template <ggml_type kType>
  static void LoadKeys(const AttentionShape& shape, const uint8_t* head, const int32_t* cells, int n, float* keys) {
    for (int first = 0; first < n; first += kLanes) {
      const uint8_t* cell[kLanes];
      for (int i = 0; i < kLanes; ++i) cell[i] = head + cells[first + i < n ? first + i : n - 1] * shape.key_cell_bytes;
      for (int64_t d = 0; d < shape.key_values; d += kLanes) {
        Floats rows[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) rows[i] = LoadCell<kType>(cell[i], d);
        S::Transpose(rows);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) S::Store(keys + (d + i) * kBlockCells + first, rows[i]);
      }
    }
  }

  template <ggml_type kType>
  static void LoadValues(const AttentionShape& shape, const uint8_t* head, const int32_t* cells, int n, float* values) {
    for (int i = 0; i < n; ++i) {
      const uint8_t* row = head + cells[i] * shape.value_cell_bytes;
      for (int64_t d = 0; d < shape.head_values; d += kLanes) {
        S::Store(values + i * shape.head_values + d, LoadCell<kType>(row, d));
      }
    }
  }

  // Chooses the instance of a function template for a type of memory.
#define OUTRIDER_BY_TYPE(function, type)                 \
  ((type) == GGML_TYPE_F16    ? function<GGML_TYPE_F16>  \
   : (type) == GGML_TYPE_BF16 ? function<GGML_TYPE_BF16> \
   : (type) == GGML_TYPE_Q8_0 ? function<GGML_TYPE_Q8_0> \
                              : function<GGML_TYPE_F32>)

  // scores[q][cell] = query · key for kQueries queries and kVectors vectors of cells.
  template <int kQueries, int kVectors>
  OUTRIDER_INLINE void ScoreSome(const float* const* queries, const float* keys, int64_t n, float* scores) {
    Floats sum[kQueries][kVectors];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[q][v] = S::ZeroFloats();
    }
    for (int64_t d = 0; d < n; ++d) {
      Floats key[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) key[v] = S::Load(keys + d * kBlockCells + v * kLanes);
#pragma GCC unroll 16
      for (int q = 0; q < kQueries; ++q) {
        const Floats x = S::Broadcast(queries[q][d]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sum[q][v] = S::Fma(key[v], x, sum[q][v]);
      }
    }
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) S::Store(scores + q * kBlockCells + v * kLanes, sum[q][v]);
    }
  }

  template <int kQueries>
  OUTRIDER_INLINE void ScoreQueries(const float* const* queries, const float* keys, int64_t n, int vectors,
                                    float* scores) {
    for (; vectors >= kWide; vectors -= kWide, keys += kWide * kLanes, scores += kWide * kLanes) {
      ScoreSome<kQueries, kWide>(queries, keys, n, scores);
    }
    if (vectors == 3) ScoreSome<kQueries, 3>(queries, keys, n, scores);
    if (vectors == 2) ScoreSome<kQueries, 2>(queries, keys, n, scores);
    if (vectors == 1) ScoreSome<kQueries, 1>(queries, keys, n, scores);
  }

  static void Score(const AttentionShape& shape, const float* const* queries, int n_queries, const float* keys,
                    int cells, float* scores) {
    const int vectors = (cells + kLanes - 1) / kLanes;
    int q = 0;
    for (; q + kScoreQueries <= n_queries; q += kScoreQueries) {
      ScoreQueries<kScoreQueries>(queries + q, keys, shape.key_values, vectors, scores + q * kBlockCells);
    }
    if (n_queries - q == 2) ScoreQueries<2>(queries + q, keys, shape.key_values, vectors, scores + q * kBlockCells);
    if (n_queries - q == 1) ScoreQueries<1>(queries + q, keys, shape.key_values, vectors, scores + q * kBlockCells);
  }

  // sums[q] += weights[q][cell] · values[cell], cell after cell.
  template <int kQueries, int kVectors>
  OUTRIDER_INLINE void WeighSome(const float* weights, const float* values, int64_t stride, int cells, float* sums) {
    Floats sum[kQueries][kVectors];
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sum[q][v] = S::Load(sums + q * stride + v * kLanes);
    }
    for (int cell = 0; cell < cells; ++cell) {
      Floats value[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) value[v] = S::Load(values + cell * stride + v * kLanes);
#pragma GCC unroll 16
      for (int q = 0; q < kQueries; ++q) {
        const Floats weight = S::Broadcast(weights[q * kBlockCells + cell]);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sum[q][v] = S::Fma(value[v], weight, sum[q][v]);
      }
    }
#pragma GCC unroll 16
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) S::Store(sums + q * stride + v * kLanes, sum[q][v]);
    }
  }

  template <int kQueries>
  OUTRIDER_INLINE void WeighQueries(const float* weights, const float* values, int64_t stride, int cells, float* sums) {
    int64_t d = 0;
    for (; d + kWide * kLanes <= stride; d += kWide * kLanes) {
      WeighSome<kQueries, kWide>(weights, values + d, stride, cells, sums + d);
    }
    for (; d < stride; d += kLanes) WeighSome<kQueries, 1>(weights, values + d, stride, cells, sums + d);
  }

  // Adds only the cells that each query sees. Values of other cells, even infinities, have no effect on it.
  static void Weigh(const float* weights, const float* values, int64_t stride, const int* seen, int n_queries,
                    float* sums) {
    for (int q = 0; q < n_queries;) {
      int together = n_queries - q >= S::kValueQueries ? seen[q] : 0;
      for (int i = 1; i < S::kValueQueries && together > 0; ++i)
        together = seen[q + i] < together ? seen[q + i] : together;
      const int group = together > 0 ? S::kValueQueries : 1;
      if (together > 0) {
        WeighQueries<S::kValueQueries>(weights + q * kBlockCells, values, stride, together, sums + q * stride);
      }
      for (int end = q + group; q < end; ++q) {
        if (seen[q] <= together) continue;
        WeighQueries<1>(weights + q * kBlockCells + together, values + together * stride, stride, seen[q] - together,
                        sums + q * stride);
      }
    }
  }

  struct Running {
    float largest;
    Floats sum;  // by lane of the cells
  };

  // Turns the scores of a block into weights relative to the largest score so far, and scales `sums` accordingly.
  OUTRIDER_INLINE void Soften(const AttentionShape& shape, const AttentionTile& tile, int row, int head,
                              const int32_t* cells, int seen, float* scores, Running& running, float* sums) {
    const Floats scale = S::Broadcast(shape.scale);
    const int vectors = (seen + kLanes - 1) / kLanes;
    Floats largest = S::Broadcast(-INFINITY);
    for (int v = 0; v < vectors; ++v) {
      Floats s = S::Multiply(S::Load(scores + v * kLanes), scale);
      if (shape.softcap != 0.0f) s = S::Multiply(S::Broadcast(shape.softcap), Tanh(s));
      if (tile.biased) {
        float bias[kLanes];
        for (int i = 0; i < kLanes; ++i) {
          const int at = v * kLanes + i;
          bias[i] = at < seen ? tile.slopes[head] * S::FromHalf(tile.mask[row][cells[at]]) : 0.0f;
        }
        s = S::Add(s, S::Load(bias));
      }
      s = S::Choose(S::FirstLanes(seen - v * kLanes), s, S::Broadcast(-INFINITY));
      S::Store(scores + v * kLanes, s);
      largest = S::Max(largest, s);
    }
    const float block_largest = S::LargestOf(largest);
    if (block_largest > running.largest) {
      const float shrink = Exp(running.largest - block_largest);
      running.largest = block_largest;
      running.sum = S::Multiply(running.sum, S::Broadcast(shrink));
      for (int64_t d = 0; d < shape.head_values; d += kLanes) {
        S::Store(sums + d, S::Multiply(S::Load(sums + d), S::Broadcast(shrink)));
      }
    }
    for (int v = 0; v < vectors; ++v) {
      const Floats weight = Exp(S::Subtract(S::Load(scores + v * kLanes), S::Broadcast(running.largest)));
      S::Store(scores + v * kLanes, weight);
      running.sum = S::Add(running.sum, weight);
    }
  }

  // Merges `part` into `total`; each has its largest score and its sum of weights. A part without visible cells is
  // ignored.
  OUTRIDER_INLINE void Merge(SpanResult& total, float* total_values, const SpanResult& part, const float* part_values,
                             int64_t n) {
    if (part.sum == 0.0f) return;
    const float largest = part.largest > total.largest ? part.largest : total.largest;
    const float keep = Exp(total.largest - largest), take = Exp(part.largest - largest);
    const Floats keeps = S::Broadcast(keep), takes = S::Broadcast(take);
    for (int64_t d = 0; d < n; d += kLanes) {
      S::Store(total_values + d,
               S::Fma(S::Load(part_values + d), takes, S::Multiply(S::Load(total_values + d), keeps)));
    }
    total.sum = total.sum * keep + part.sum * take;
    total.largest = largest;
  }

  // Computes the span from visible cell `first` on for all queries of the tile: their results and, in `sums`, the
  // weighted values.
  static void AttendSpan(const AttentionShape& shape, const AttentionTile& tile, int n_queries, int first,
                         const Scratch& scratch, SpanResult* results) {
    Running running[kTileQueries];
    for (int q = 0; q < n_queries; ++q) running[q] = {-INFINITY, S::ZeroFloats()};
    for (int64_t i = 0; i < n_queries * shape.head_values; i += kLanes) S::Store(scratch.sums + i, S::ZeroFloats());
    const int end = first + kSpanCells < tile.n_cells ? first + kSpanCells : tile.n_cells;
    for (int at = first; at < end; at += kBlockCells) {
      const int n = end - at < kBlockCells ? end - at : kBlockCells;
      const int32_t* cells = tile.cells + at;
      OUTRIDER_BY_TYPE(LoadKeys, shape.key_type)(shape, tile.keys, cells, n, scratch.keys);
      OUTRIDER_BY_TYPE(LoadValues, shape.value_type)(shape, tile.values, cells, n, scratch.values);
      Score(shape, tile.queries, n_queries, scratch.keys, n, scratch.weights);
      int seen[kTileQueries];
      for (int q = 0; q < n_queries; ++q) {
        const int row = q / tile.n_heads, left = tile.seen[row] - at;
        seen[q] = left < 0 ? 0 : left < n ? left : n;
        if (seen[q] == 0) continue;
        Soften(shape, tile, row, q % tile.n_heads, cells, seen[q], scratch.weights + q * kBlockCells, running[q],
               scratch.sums + q * shape.head_values);
      }
      Weigh(scratch.weights, scratch.values, shape.head_values, seen, n_queries, scratch.sums);
    }
    for (int q = 0; q < n_queries; ++q) results[q] = {running[q].largest, S::SumOf(running[q].sum)};
  }

  OUTRIDER_INLINE void Finish(const AttentionShape& shape, int head, SpanResult total, const float* values,
                              float* out) {
    float keep = 1.0f;
    if (shape.sinks != nullptr) {
      const float sink = shape.sinks[head];
      const float largest = sink > total.largest ? sink : total.largest;
      keep = Exp(total.largest - largest);
      total.sum = total.sum * keep + Exp(sink - largest);
    }
    const Floats factor = S::Broadcast(total.sum == 0.0f ? 0.0f : keep / total.sum);
    for (int64_t d = 0; d < shape.head_values; d += kLanes) {
      S::Store(out + d, S::Multiply(S::Load(values + d), factor));
    }
  }

  static void AttendPart(const AttentionShape& shape, const AttentionTile& tile, int n_queries,
                         const Scratch& scratch) {
    SpanResult results[kTileQueries];
    AttendSpan(shape, tile, n_queries, tile.span * kSpanCells, scratch, results);
    for (int q = 0; q < n_queries; ++q) {
      float* part = tile.parts + tile.span * tile.span_stride + q * tile.part_stride;
      part[0] = results[q].largest;
      part[1] = results[q].sum;
      for (int64_t d = 0; d < shape.head_values; d += kLanes) {
        S::Store(part + kPartHeader + d, S::Load(scratch.sums + q * shape.head_values + d));
      }
    }
  }

  static void MergeParts(const AttentionShape& shape, const AttentionTile& tile, int n_queries,
                         const Scratch& scratch) {
    for (int q = 0; q < n_queries; ++q) {
      SpanResult total{-INFINITY, 0.0f};
      for (int64_t d = 0; d < shape.head_values; d += kLanes) S::Store(scratch.totals + d, S::ZeroFloats());
      for (int span = 0; span < tile.n_spans; ++span) {
        const float* part = tile.parts + span * tile.span_stride + q * tile.part_stride;
        Merge(total, scratch.totals, {part[0], part[1]}, part + kPartHeader, shape.head_values);
      }
      Finish(shape, tile.first_head + q % tile.n_heads, total, scratch.totals, tile.out[q]);
    }
  }

  static void Attend(const AttentionShape& shape, const AttentionTile& tile, uint8_t* memory) {
    const Scratch scratch(memory, shape);
    const int n_queries = tile.n_rows * tile.n_heads;
    if (tile.parts != nullptr) {
      tile.span < 0 ? MergeParts(shape, tile, n_queries, scratch) : AttendPart(shape, tile, n_queries, scratch);
      return;
    }
    SpanResult totals[kTileQueries];
    for (int q = 0; q < n_queries; ++q) totals[q] = {-INFINITY, 0.0f};
    for (int64_t i = 0; i < n_queries * shape.head_values; i += kLanes) S::Store(scratch.totals + i, S::ZeroFloats());
    for (int first = 0; first < tile.n_cells; first += kSpanCells) {
      SpanResult results[kTileQueries];
      AttendSpan(shape, tile, n_queries, first, scratch, results);
      for (int q = 0; q < n_queries; ++q) {
        Merge(totals[q], scratch.totals + q * shape.head_values, results[q], scratch.sums + q * shape.head_values,
              shape.head_values);
      }
    }
    for (int q = 0; q < n_queries; ++q) {
      Finish(shape, tile.first_head + q % tile.n_heads, totals[q], scratch.totals + q * shape.head_values, tile.out[q]);
    }
  }
};

}  // namespace outrider::kernels
