// The matrix kernels, as templates over the vector operations (simd_*.h) and the weight type. Each type has a format:
// how its activations are quantised, and how a block of 16 rows is multiplied with a block of the panel's columns.
//
// Integer sums are exact, so only the floating-point operations can change the result. For each column they are done
// block by block, in order. For Q4_0, IQ4_NL and Q4_K these are the same operations as in ggml's own kernels, so
// results are equal bit by bit.
#pragma once

#include <type_traits>

#include "kernels/grids.h"
#include "kernels/kernel_set.h"
#include "kernels/layout.h"

namespace outrider::kernels {

inline constexpr int kPrefetchBytes = 2304;  // how far ahead weights are prefetched

// ---- activations in blocks of 32: [columns][32] values, [columns] scales, [columns] a number the format makes of the
// sum ----

template <typename S>
struct Blocks32 {
  static constexpr int kValues = 32;
  static constexpr size_t kColumnBytes = 40;

  const int8_t* values;
  const float* scales;
  const int32_t* sums;

  Blocks32(const uint8_t* block, int columns)
      : values(reinterpret_cast<const int8_t*>(block)),
        scales(reinterpret_cast<const float*>(block + 32 * columns)),
        sums(reinterpret_cast<const int32_t*>(block + 36 * columns)) {}

  // As ggml's Q8_0: the scale is rounded to half precision after the values were made with the unrounded one.
  struct Written {
    float scale;
    int32_t sum;
    int32_t* sum_at;
  };
  OUTRIDER_INLINE Written Write(const float* x, uint8_t* block, int columns, int column) {
    constexpr int kParts = 32 / S::kLanes;
    typename S::Floats part[kParts];
    typename S::Floats largest = S::ZeroFloats();
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      part[p] = S::Load(x + p * S::kLanes);
      largest = S::Max(largest, S::Abs(part[p]));
    }
    const float max_magnitude = S::LargestOf(largest);
    const typename S::Floats inverse = S::Broadcast(max_magnitude != 0.0f ? 127.0f / max_magnitude : 0.0f);
    uint32_t sum = 0;  // unsigned, because with NaNs it may overflow
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      const typename S::Ints values = S::Round(S::Multiply(part[p], inverse));
      S::StoreI8(reinterpret_cast<int8_t*>(block) + 32 * column + p * S::kLanes, values);
      sum += static_cast<uint32_t>(S::SumOf(values));
    }
    const float scale = S::RoundToHalf(max_magnitude / 127.0f);
    reinterpret_cast<float*>(block + 32 * columns)[column] = scale;
    return {scale, static_cast<int32_t>(sum), reinterpret_cast<int32_t*>(block + 36 * columns) + column};
  }
};

// ---- formats with blocks of 32 ----

template <typename S>
OUTRIDER_INLINE void LoadNibbles(const uint8_t* from, typename S::Bytes (&w)[8]) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const auto both = S::LoadBytes(from + j * kQuadBytes);
    w[j] = S::LowNibbles(both);
    w[j + 4] = S::HighNibbles(both);
  }
}

// They differ in how 32 values of 16 rows are decoded into bytes, in what was added to make these unsigned (kOffset),
// and in whether 16 bits are enough for the sum of two products (kSmall).
struct Q4_0Weights {
  using Layout = Q4_0Block;
  static constexpr ggml_type kType = GGML_TYPE_Q4_0;
  static constexpr int kOffset = 8;
  static constexpr bool kSmall = true;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
  }
};

struct Q4_1Weights {
  using Layout = Q4_1Block;
  static constexpr ggml_type kType = GGML_TYPE_Q4_1;
  static constexpr int kOffset = 0;
  static constexpr bool kSmall = true;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
  }
};

template <typename S>
OUTRIDER_INLINE void AddFifthBits(const uint8_t* from, typename S::Bytes (&w)[8]) {
  const auto bits = S::LoadBytes(from);
  w[0] = S::Or(w[0], S::template Field<0, 1, 4>(bits));
  w[1] = S::Or(w[1], S::template Field<1, 1, 4>(bits));
  w[2] = S::Or(w[2], S::template Field<2, 1, 4>(bits));
  w[3] = S::Or(w[3], S::template Field<3, 1, 4>(bits));
  w[4] = S::Or(w[4], S::template Field<4, 1, 4>(bits));
  w[5] = S::Or(w[5], S::template Field<5, 1, 4>(bits));
  w[6] = S::Or(w[6], S::template Field<6, 1, 4>(bits));
  w[7] = S::Or(w[7], S::template Field<7, 1, 4>(bits));
}

struct Q5_0Weights {
  using Layout = Q5_0Block;
  static constexpr ggml_type kType = GGML_TYPE_Q5_0;
  static constexpr int kOffset = 16;
  static constexpr bool kSmall = true;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
    AddFifthBits<S>(block + Layout::kFifthBits, w);
  }
};

struct Q5_1Weights {
  using Layout = Q5_1Block;
  static constexpr ggml_type kType = GGML_TYPE_Q5_1;
  static constexpr int kOffset = 0;
  static constexpr bool kSmall = true;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
    AddFifthBits<S>(block + Layout::kFifthBits, w);
  }
};

struct Q8_0Weights {
  using Layout = Q8_0Block;
  static constexpr ggml_type kType = GGML_TYPE_Q8_0;
  static constexpr int kOffset = 128;
  static constexpr bool kSmall = false;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) w[j] = S::LoadBytes(block + Layout::kValues + j * kQuadBytes);
  }
};

inline constexpr uint8_t kIq4NlPlus128[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

struct Iq4NlWeights {
  using Layout = Iq4NlBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ4_NL;
  static constexpr int kOffset = 128;
  static constexpr bool kSmall = false;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) w[j] = S::Lookup(kIq4NlPlus128, w[j]);
  }
};

inline constexpr uint8_t kMxfp4Plus12[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct Mxfp4Weights {
  using Layout = Mxfp4Block;
  static constexpr ggml_type kType = GGML_TYPE_MXFP4;
  static constexpr int kOffset = 12;
  static constexpr bool kSmall = true;
  template <typename S>
  OUTRIDER_INLINE void Load(const uint8_t* block, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles, w);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) w[j] = S::Lookup(kMxfp4Plus12, w[j]);
  }
};

template <typename S, typename Layout>
OUTRIDER_INLINE typename S::Floats LoadScales(const uint8_t* block, int slice) {
  if constexpr (requires { Layout::kExponents; }) {
    return S::LoadPowers(block + Layout::kExponents + slice * S::kLanes);
  } else {
    return S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kScales) + slice * S::kLanes);
  }
}

template <typename S, typename Weights>
struct Format32 {
  using Layout = typename Weights::Layout;
  using Panel = Blocks32<S>;
  static constexpr ggml_type kType = Weights::kType;
  static constexpr int kMaxColumns = S::kPanelColumns;
  static constexpr bool kHasMins = requires { Layout::kMins; };
  template <int M>
  struct Sums {
    typename S::Floats sum[M];
  };

  // The number that is computed from the sum: the start value of the integer sum or, for formats with mins, the sum of
  // the quantised values.
  OUTRIDER_INLINE void Quantize(const float* x, uint8_t* block, int columns, int column) {
    const auto written = Panel::Write(x, block, columns, column);
    if constexpr (kHasMins) {
      *reinterpret_cast<float*>(written.sum_at) = written.scale * static_cast<float>(written.sum);
    } else {
      constexpr uint32_t kOffset = Weights::kSmall || S::kOffsetDot ? Weights::kOffset : 0;
      *written.sum_at = static_cast<int32_t>(0U - kOffset * static_cast<uint32_t>(written.sum));
    }
  }

  template <int M>
  OUTRIDER_INLINE void AddBlock(const uint8_t* block, int slice, const Panel& panel, Sums<M>& sums) {
    typename S::Bytes w[8];
    Weights::template Load<S>(block + slice * S::kLanes * 4, w);
    const auto scale = LoadScales<S, Layout>(block, slice);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot = kHasMins ? S::Zero() : S::Broadcast(panel.sums[m]);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const int8_t* x = panel.values + m * 32 + 4 * j;
        Weights::kSmall ? S::Dot(dot, w[j], x) : S::DotOffset(dot, w[j], x);
      }
      if constexpr (kHasMins) {
        const auto min = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kMins) + slice * S::kLanes);
        sums.sum[m] = S::Fma(min, S::Broadcast(reinterpret_cast<const float*>(panel.sums)[m]), sums.sum[m]);
      }
      sums.sum[m] = S::Fma(S::ToFloats(dot), S::Multiply(scale, S::Broadcast(panel.scales[m])), sums.sum[m]);
    }
  }
};

// ---- activations in blocks of 256: [columns][256] values, [columns] scales, [columns] what the format needs of the
// sums ----

template <typename S, size_t kTail>
struct Blocks256 {
  static constexpr int kValues = 256;
  static constexpr size_t kColumnBytes = 260 + kTail;

  const int8_t* values;
  const float* scales;
  const uint8_t* tails;

  Blocks256(const uint8_t* block, int columns)
      : values(reinterpret_cast<const int8_t*>(block)),
        scales(reinterpret_cast<const float*>(block + 256 * columns)),
        tails(block + 260 * columns) {}

  // As ggml's Q8_K: the value of largest magnitude (the first one among equals) becomes -127. Also returns the sums of
  // each 16 values.
  OUTRIDER_INLINE void Write(const float* x, uint8_t* block, int columns, int column, int32_t (&sums)[16]) {
    typename S::Floats largest = S::ZeroFloats();
    for (int i = 0; i < 256; i += S::kLanes) largest = S::Max(largest, S::Abs(S::Load(x + i)));
    const float max_magnitude = S::LargestOf(largest);
    float inverse = 0.0f, scale = 0.0f;
    for (int i = 0; i < 256 && max_magnitude != 0.0f; i += S::kLanes) {
      const unsigned here = S::Bits(S::Equal(S::Abs(S::Load(x + i)), S::Broadcast(max_magnitude)));
      if (here == 0) continue;
      inverse = -127.0f / x[i + __builtin_ctz(here)];
      scale = 1.0f / inverse;
      break;
    }
    auto* values = reinterpret_cast<int8_t*>(block) + 256 * column;
    for (int part = 0; part < 16; ++part) {
      uint32_t sum = 0;
      for (int i = 0; i < 16; i += S::kLanes) {
        const auto quantized = S::Round(S::Multiply(S::Load(x + 16 * part + i), S::Broadcast(inverse)));
        S::StoreI8(values + 16 * part + i, quantized);
        sum += static_cast<uint32_t>(S::SumOf(quantized));
      }
      sums[part] = static_cast<int32_t>(sum);
    }
    reinterpret_cast<float*>(block + 256 * columns)[column] = scale;
  }

  OUTRIDER_INLINE uint8_t* TailOf(uint8_t* block, int columns, int column) {
    return block + 260 * columns + kTail * static_cast<size_t>(column);
  }
};

// Q4_K, and Q5_K with its fifth bits: scales and mins of 6 bits for parts of 32 values.
template <typename S, bool kFifthBit>
struct FormatQ45K {
  using Layout = typename std::conditional<kFifthBit, Q5KBlock, Q4KBlock>::type;
  using Panel = Blocks256<S, 16>;  // tail: the sums of the 8 parts
  static constexpr ggml_type kType = kFifthBit ? GGML_TYPE_Q5_K : GGML_TYPE_Q4_K;
  static constexpr int kMaxColumns = S::kPanelColumns / 2;
  template <int M>
  struct Sums {
    typename S::Floats sum[M];
    typename S::Floats mins[M];
  };

  OUTRIDER_INLINE void Quantize(const float* x, uint8_t* block, int columns, int column) {
    int32_t sums[16];
    Panel::Write(x, block, columns, column, sums);
    auto* tail = reinterpret_cast<int16_t*>(Panel::TailOf(block, columns, column));
    for (int p = 0; p < 8; ++p) {
      tail[p] = static_cast<int16_t>(static_cast<uint32_t>(sums[2 * p]) + static_cast<uint32_t>(sums[2 * p + 1]));
    }
  }

  // Scales and mins of the parts, a byte each: [part][row].
  struct Parts {
    alignas(64) uint8_t scale[8 * kTileRows];
    alignas(64) uint8_t min[8 * kTileRows];
  };
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    constexpr int kStep = S::kLanes * 4;
    const uint8_t* nibbles = block + Layout::kPartNibbles;
    const uint8_t* upper = block + Layout::kPartUpperBits;
#pragma GCC unroll 2
    for (int at = 0; at < kQuadBytes; at += kStep) {
      const auto first = S::LoadBytes(nibbles + at), last = S::LoadBytes(nibbles + kQuadBytes + at);
      const auto bits = S::LoadBytes(upper + at);
      StoreBytes(parts.scale + at, S::Or(S::LowNibbles(first), S::template Field<0, 2, 4>(bits)));
      StoreBytes(parts.min + at, S::Or(S::HighNibbles(first), S::template Field<2, 2, 4>(bits)));
      StoreBytes(parts.scale + kQuadBytes + at, S::Or(S::LowNibbles(last), S::template Field<4, 2, 4>(bits)));
      StoreBytes(parts.min + kQuadBytes + at, S::Or(S::HighNibbles(last), S::template Field<6, 2, 4>(bits)));
    }
  }
  OUTRIDER_INLINE void StoreBytes(uint8_t* to, typename S::Bytes x) { __builtin_memcpy(to, &x, sizeof x); }

  template <int kPart, int M>
  OUTRIDER_INLINE void AddPart(const uint8_t* block, int slice, const Parts& parts, const Panel& panel,
                               typename S::Ints (&dots)[M]) {
    typename S::Bytes w[8];
    LoadNibbles<S>(block + Layout::kNibbles + kPart * 4 * kQuadBytes + slice * S::kLanes * 4, w);
    if constexpr (kFifthBit) {
      const uint8_t* fifth = block + Q5KBlock::kFifthBits + slice * S::kLanes * 4;
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        w[j] = S::Or(w[j], S::template Field<kPart, 1, 4>(S::LoadBytes(fifth + j * kQuadBytes)));
      }
    }
    const auto scale = S::LoadU8(parts.scale + kPart * kTileRows + slice * S::kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot = S::Zero();
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) S::Dot(dot, w[j], panel.values + m * 256 + kPart * 32 + 4 * j);
      dots[m] = S::MultiplyAdd(dot, scale, dots[m]);
    }
  }

  template <int M>
  OUTRIDER_INLINE void AddBlock(const uint8_t* block, int slice, const Panel& panel, Sums<M>& sums) {
    Parts parts;
    Unpack(block, parts);
    typename S::Ints dots[M];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) dots[m] = S::Zero();
    AddPart<0, M>(block, slice, parts, panel, dots);
    AddPart<1, M>(block, slice, parts, panel, dots);
    AddPart<2, M>(block, slice, parts, panel, dots);
    AddPart<3, M>(block, slice, parts, panel, dots);
    AddPart<4, M>(block, slice, parts, panel, dots);
    AddPart<5, M>(block, slice, parts, panel, dots);
    AddPart<6, M>(block, slice, parts, panel, dots);
    AddPart<7, M>(block, slice, parts, panel, dots);

    typename S::Ints pairs[4];
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      const uint8_t* min = parts.min + 2 * p * kTileRows + slice * S::kLanes;
      pairs[p] = S::PairsOf(S::LoadU8(min), S::LoadU8(min + kTileRows));
    }
    const auto scale = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kScale) + slice * S::kLanes);
    const auto min = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kMin) + slice * S::kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot = S::Zero();
      const auto* part_sums = reinterpret_cast<const int16_t*>(panel.tails + 16 * m);
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) S::DotPairs(dot, pairs[p], part_sums + 2 * p);
      const auto column_scale = S::Broadcast(panel.scales[m]);
      sums.sum[m] = S::Fma(S::ToFloats(dots[m]), S::Multiply(scale, column_scale), sums.sum[m]);
      sums.mins[m] = S::Fma(S::ToFloats(dot), S::Multiply(min, column_scale), sums.mins[m]);
    }
  }
};

template <typename S>
struct FormatQ6K {
  using Layout = Q6KBlock;
  using Panel = Blocks256<S, 64>;  // tail: -32 times the sums of the 16 parts
  static constexpr ggml_type kType = GGML_TYPE_Q6_K;
  static constexpr int kMaxColumns = S::kPanelColumns / 2;
  template <int M>
  struct Sums {
    typename S::Floats sum[M];
  };

  OUTRIDER_INLINE void Quantize(const float* x, uint8_t* block, int columns, int column) {
    int32_t sums[16];
    Panel::Write(x, block, columns, column, sums);
    auto* tail = reinterpret_cast<int32_t*>(Panel::TailOf(block, columns, column));
    for (int p = 0; p < 16; ++p) {
      tail[p] = static_cast<int32_t>(0U - 32U * static_cast<uint32_t>(sums[p]));
    }
  }

  // Part p of a group of 64: quads 4p to 4p + 3.
  template <int kPart, int M>
  OUTRIDER_INLINE void AddPart(const uint8_t* block, int group, int slice, const Panel& panel,
                               typename S::Floats (&dots)[M]) {
    typename S::Bytes w[4];
    const uint8_t* at = block + slice * S::kLanes * 4;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto both = S::LoadBytes(at + Layout::kNibbles + (group * 8 + kPart % 2 * 4 + j) * kQuadBytes);
      const auto upper = S::LoadBytes(at + Layout::kUpperBits + (group * 4 + j) * kQuadBytes);
      w[j] = S::Or(kPart < 2 ? S::LowNibbles(both) : S::HighNibbles(both), S::template Field<2 * kPart, 2, 4>(upper));
    }
    const int part = group * 4 + kPart;
    const auto scale = S::ToFloats(
        S::LoadI8(reinterpret_cast<const int8_t*>(block) + Layout::kPartScales + part * kTileRows + slice * S::kLanes));
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot = S::Broadcast(reinterpret_cast<const int32_t*>(panel.tails + 64 * m)[part]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) S::Dot(dot, w[j], panel.values + m * 256 + part * 16 + 4 * j);
      dots[m] = S::Fma(S::ToFloats(dot), scale, dots[m]);
    }
  }

  template <int M>
  OUTRIDER_INLINE void AddBlock(const uint8_t* block, int slice, const Panel& panel, Sums<M>& sums) {
    typename S::Floats dots[M];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) dots[m] = S::ZeroFloats();
    for (int group = 0; group < 4; ++group) {
      AddPart<0, M>(block, group, slice, panel, dots);
      AddPart<1, M>(block, group, slice, panel, dots);
      AddPart<2, M>(block, group, slice, panel, dots);
      AddPart<3, M>(block, group, slice, panel, dots);
    }
    const auto scale = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kScale) + slice * S::kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      sums.sum[m] = S::Fma(dots[m], S::Multiply(scale, S::Broadcast(panel.scales[m])), sums.sum[m]);
    }
  }
};

// ---- formats of 256 values in parts with scales of their own, which are small integers ----

// Scales of 6 bits with 32 added, a byte each: [part][row].
template <int kBytes>
OUTRIDER_INLINE void UnpackSixBitScales(const uint8_t* nibbles, const uint8_t* upper, int8_t* scales) {
  constexpr int kQuarter = kBytes / 4;
  for (int i = 0; i < kQuarter; ++i) {
    const uint8_t first = nibbles[i], second = nibbles[kQuarter + i], bits = upper[i];
    scales[i] = static_cast<int8_t>(((first & 15) | (bits & 3) << 4) - 32);
    scales[kQuarter + i] = static_cast<int8_t>(((second & 15) | (bits & 12) << 2) - 32);
    scales[2 * kQuarter + i] = static_cast<int8_t>((first >> 4 | (bits & 48)) - 32);
    scales[3 * kQuarter + i] = static_cast<int8_t>((second >> 4 | (bits >> 2 & 48)) - 32);
  }
}

// They differ in how the values of a part are decoded (part kPart of a half of 128 values), and in what is unpacked for
// the whole block before: scales, and perhaps mins or signs.
template <int kParts>
struct PartScales {
  alignas(64) int8_t scales[kParts * kTileRows];
};

struct Iq4XsWeights {
  using Layout = Iq4XsBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ4_XS;
  static constexpr int kParts = 8, kOffset = 128;
  static constexpr bool kSmall = false;
  using Parts = PartScales<kParts>;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    UnpackSixBitScales<kParts * kTileRows>(block + Layout::kPartNibbles, block + Layout::kPartUpperBits, parts.scales);
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts&, typename S::Bytes (&w)[8]) {
    LoadNibbles<S>(block + Layout::kNibbles + (half * 4 + kPart) * 4 * kQuadBytes + slice * S::kLanes * 4, w);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) w[j] = S::Lookup(kIq4NlPlus128, w[j]);
  }
};

struct Q3KWeights {
  using Layout = Q3KBlock;
  static constexpr ggml_type kType = GGML_TYPE_Q3_K;
  static constexpr int kParts = 16, kOffset = 4;
  static constexpr bool kSmall = true;
  using Parts = PartScales<kParts>;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    UnpackSixBitScales<kParts * kTileRows>(block + Layout::kPartNibbles, block + Layout::kPartUpperBits, parts.scales);
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts&, typename S::Bytes (&w)[4]) {
    const uint8_t* at = block + slice * S::kLanes * 4;
    const uint8_t* low = at + Layout::kLowBits + (half * 2 + kPart / 4) * 4 * kQuadBytes;
    const uint8_t* third = at + Layout::kThirdBits + half * 4 * kQuadBytes;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      w[j] = S::Or(S::template Field<kPart % 4 * 2, 2, 0>(S::LoadBytes(low + j * kQuadBytes)),
                   S::template Field<kPart, 1, 2>(S::LoadBytes(third + j * kQuadBytes)));
    }
  }
};

struct Q2KWeights {
  using Layout = Q2KBlock;
  static constexpr ggml_type kType = GGML_TYPE_Q2_K;
  static constexpr int kParts = 16, kOffset = 0;
  static constexpr bool kSmall = true;
  struct Parts : PartScales<kParts> {
    alignas(64) uint8_t mins[kParts * kTileRows];
  };
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    for (int i = 0; i < kParts * kTileRows; ++i) {
      const uint8_t both = block[Layout::kParts + static_cast<size_t>(i)];
      parts.scales[i] = static_cast<int8_t>(both & 15);
      parts.mins[i] = both >> 4;
    }
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts&, typename S::Bytes (&w)[4]) {
    const uint8_t* low = block + Layout::kLowBits + (half * 2 + kPart / 4) * 4 * kQuadBytes + slice * S::kLanes * 4;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) w[j] = S::template Field<kPart % 4 * 2, 2, 0>(S::LoadBytes(low + j * kQuadBytes));
  }
};

// Scales 1 + 2·x of 4 bits each.
template <int kParts>
OUTRIDER_INLINE void UnpackFourBitScales(const uint8_t* from, int8_t* scales) {
  constexpr int kHalf = kParts / 2 * kTileRows;
  for (int i = 0; i < kHalf; ++i) {
    scales[i] = static_cast<int8_t>(1 + 2 * (from[i] & 15));
    scales[kHalf + i] = static_cast<int8_t>(1 + 2 * (from[i] >> 4));
  }
}

// The 16 nibbles of `x` as bytes.
OUTRIDER_INLINE void StoreNibbles(uint64_t x, uint64_t (&bytes)[2]) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half, x >>= 32) {
    uint64_t wide = x & 0xFFFFFFFFU;
    wide = (wide | wide << 16) & 0x0000FFFF0000FFFFU;
    wide = (wide | wide << 8) & 0x00FF00FF00FF00FFU;
    bytes[half] = (wide | wide << 4) & 0x0F0F0F0F0F0F0F0FU;
  }
}

// The sign words of a group of eight values of which the file has 7 signs: makes the number of set signs even. Returns
// the bits that were in the place of the eighth sign, as nibbles of 0 or 1.
OUTRIDER_INLINE uint64_t CompleteSigns(const uint8_t* from, uint64_t* signs) {
  uint64_t both[2];
  __builtin_memcpy(both, from, sizeof both);
  const uint64_t three = both[1] & 0x7777777777777777U;
  uint64_t odd = both[0] ^ three;
  odd ^= odd >> 2;
  odd ^= odd >> 1;
  signs[0] = both[0];
  signs[1] = three | (odd & 0x1111111111111111U) << 3;
  return both[1] >> 3 & 0x1111111111111111U;
}

// Of the XXS types: all signs, and the scales that are between them.
struct SignsAndScales : PartScales<8> {
  uint64_t signs[64];

  OUTRIDER_INLINE void Unpack(const uint8_t* words, SignsAndScales& parts) {
    for (int part = 0; part < 8; ++part) {
      uint64_t scales = 0;
#pragma GCC unroll 4
      for (int l = 0; l < 4; ++l) {
        const int quad = 8 * part + 2 * l;
        scales |= CompleteSigns(words + 8 * quad, parts.signs + quad) << l;
      }
      uint64_t bytes[2];
      StoreNibbles(scales, bytes);
      for (uint64_t& eight : bytes) eight = 2 * eight + 0x0101010101010101U;
      __builtin_memcpy(parts.scales + part * kTileRows, bytes, sizeof bytes);
    }
  }
};

// Four entries of a grid at these indices: quads, with signs.
template <typename S>
OUTRIDER_INLINE typename S::Bytes SignedQuad(const uint32_t* grid, typename S::Ints index, const uint8_t* sign_words,
                                             int quad, int slice) {
  return S::NegateAround64(S::template Gather<1>(grid, index), sign_words + 8 * quad + slice * S::kLanes / 2);
}
template <typename S>
OUTRIDER_INLINE void SignedPair(const uint32_t* grid, typename S::Ints index, const uint8_t* sign_words, int quad,
                                int slice, typename S::Bytes* w) {
  const uint8_t* signs = sign_words + 8 * quad + slice * S::kLanes / 2;
  w[0] = S::NegateAround64(S::template Gather<2>(grid, index), signs);
  w[1] = S::NegateAround64(S::template Gather<2>(grid + 1, index), signs + 8);
}

struct Iq3XxsWeights {
  using Layout = Iq3XxsBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ3_XXS;
  static constexpr int kParts = 8, kOffset = 64;
  static constexpr bool kSmall = true;
  static constexpr float kUnit = 0.25f;
  using Parts = SignsAndScales;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) { Parts::Unpack(block + Layout::kSigns, parts); }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts& parts, typename S::Bytes (&w)[8]) {
    const uint8_t* indices = block + Layout::kIndices + slice * S::kLanes;
    const int first = (half * 4 + kPart) * 8;
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      w[j] = SignedQuad<S>(kIq3XxsGrid.entries, S::LoadU8(indices + 16 * (first + j)),
                           reinterpret_cast<const uint8_t*>(parts.signs), first + j, slice);
    }
  }
};

struct Iq3SWeights {
  using Layout = Iq3SBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ3_S;
  static constexpr int kParts = 8, kOffset = 64;
  static constexpr bool kSmall = true;
  using Parts = PartScales<kParts>;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    UnpackFourBitScales<kParts>(block + Layout::kPartScales, parts.scales);
  }
  template <typename S, int kQuad>
  OUTRIDER_INLINE typename S::Bytes Quad(const uint8_t* block, int slice, int part, typename S::Ints upper) {
    const int quad = part * 8 + kQuad;
    const auto low = S::LoadU8(block + Layout::kIndices + 16 * quad + slice * S::kLanes);
    return SignedQuad<S>(kIq3SGrid.entries, S::Or(low, S::template UpperBits<kQuad, 1>(upper)), block + Layout::kSigns,
                         quad, slice);
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts&, typename S::Bytes (&w)[8]) {
    const int part = half * 4 + kPart;
    const auto upper = S::LoadU8(block + Layout::kUpperBits + 16 * part + slice * S::kLanes);
    w[0] = Quad<S, 0>(block, slice, part, upper);
    w[1] = Quad<S, 1>(block, slice, part, upper);
    w[2] = Quad<S, 2>(block, slice, part, upper);
    w[3] = Quad<S, 3>(block, slice, part, upper);
    w[4] = Quad<S, 4>(block, slice, part, upper);
    w[5] = Quad<S, 5>(block, slice, part, upper);
    w[6] = Quad<S, 6>(block, slice, part, upper);
    w[7] = Quad<S, 7>(block, slice, part, upper);
  }
};

struct Iq2XxsWeights {
  using Layout = Iq2XxsBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ2_XXS;
  static constexpr int kParts = 8, kOffset = 64;
  static constexpr bool kSmall = true;
  static constexpr float kUnit = 0.125f;
  using Parts = SignsAndScales;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) { Parts::Unpack(block + Layout::kSigns, parts); }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts& parts, typename S::Bytes (&w)[8]) {
    const uint8_t* indices = block + Layout::kIndices + slice * S::kLanes;
    const int first = (half * 4 + kPart) * 4;
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) {
      SignedPair<S>(kIq2XxsGrid.entries, S::LoadU8(indices + 16 * (first + l)),
                    reinterpret_cast<const uint8_t*>(parts.signs), 2 * (first + l), slice, w + 2 * l);
    }
  }
};

struct Iq2XsWeights {
  using Layout = Iq2XsBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ2_XS;
  static constexpr int kParts = 16, kOffset = 64;
  static constexpr bool kSmall = true;
  static constexpr float kUnit = 0.125f;
  struct Parts : PartScales<kParts> {
    uint64_t signs[64];
    uint64_t ninth_bits[32][2];  // of the indices: [group of eight values][row], a byte each
  };
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    UnpackFourBitScales<kParts>(block + Layout::kPartScales, parts.scales);
    for (int group = 0; group < 32; ++group) {
      StoreNibbles(CompleteSigns(block + Layout::kSigns + 16 * group, parts.signs + 2 * group),
                   parts.ninth_bits[group]);
    }
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts& parts, typename S::Bytes (&w)[4]) {
    const uint8_t* indices = block + Layout::kIndices + slice * S::kLanes;
    const int first = (half * 8 + kPart) * 2;
#pragma GCC unroll 2
    for (int l = 0; l < 2; ++l) {
      const auto upper = S::LoadU8(reinterpret_cast<const uint8_t*>(parts.ninth_bits[first + l]) + slice * S::kLanes);
      SignedPair<S>(kIq2XsGrid.entries,
                    S::Or(S::LoadU8(indices + 16 * (first + l)), S::template UpperBits<0, 1>(upper)),
                    reinterpret_cast<const uint8_t*>(parts.signs), 2 * (first + l), slice, w + 2 * l);
    }
  }
};

struct Iq2SWeights {
  using Layout = Iq2SBlock;
  static constexpr ggml_type kType = GGML_TYPE_IQ2_S;
  static constexpr int kParts = 16, kOffset = 64;
  static constexpr bool kSmall = true;
  static constexpr float kUnit = 0.125f;
  using Parts = PartScales<kParts>;
  OUTRIDER_INLINE void Unpack(const uint8_t* block, Parts& parts) {
    UnpackFourBitScales<kParts>(block + Layout::kPartScales, parts.scales);
  }
  template <typename S, int kGroupOf32>
  OUTRIDER_INLINE void Pair(const uint8_t* block, int slice, int group, typename S::Ints upper, typename S::Bytes* w) {
    const auto low = S::LoadU8(block + Layout::kIndices + 16 * group + slice * S::kLanes);
    SignedPair<S>(kIq2SGrid.entries, S::Or(low, S::template UpperBits<2 * kGroupOf32, 2>(upper)),
                  block + Layout::kSigns, 2 * group, slice, w);
  }
  template <typename S, int kPart>
  OUTRIDER_INLINE void Load(const uint8_t* block, int slice, int half, const Parts&, typename S::Bytes (&w)[4]) {
    const int group = (half * 8 + kPart) * 2;
    const auto upper = S::LoadU8(block + Layout::kUpperBits + 16 * (group / 4) + slice * S::kLanes);
    Pair<S, kPart % 2 * 2>(block, slice, group, upper, w);
    Pair<S, kPart % 2 * 2 + 1>(block, slice, group + 1, upper, w + 2);
  }
};

template <typename S, typename Weights>
struct FormatParts {
  using Layout = typename Weights::Layout;
  static constexpr int kParts = Weights::kParts, kPartValues = 256 / kParts, kQuads = kPartValues / 4;
  static constexpr bool kHasMins = requires { Layout::kMin; };
  // The tail is the start values of the parts' integer sums or, for formats with mins, the sums of 16 values.
  using Panel = Blocks256<S, kHasMins ? 32 : 4 * kParts>;
  static constexpr ggml_type kType = Weights::kType;
  static constexpr int kMaxColumns = S::kPanelColumns / 2;
  struct NoMins {};
  template <int M>
  struct WithMins {
    typename S::Floats mins[M];
  };
  template <int M>
  struct Sums : std::conditional_t<kHasMins, WithMins<M>, NoMins> {
    typename S::Floats sum[M];
  };

  OUTRIDER_INLINE void Quantize(const float* x, uint8_t* block, int columns, int column) {
    int32_t sums[16];
    Panel::Write(x, block, columns, column, sums);
    uint8_t* tail = Panel::TailOf(block, columns, column);
    if constexpr (kHasMins) {
      for (int p = 0; p < 16; ++p) reinterpret_cast<int16_t*>(tail)[p] = static_cast<int16_t>(sums[p]);
    } else {
      constexpr uint32_t kOffset = Weights::kSmall || S::kOffsetDot ? Weights::kOffset : 0;
      for (int p = 0; p < kParts; ++p) {
        uint32_t sum = 0;
        for (int i = 0; i < 16 / kParts; ++i) sum += static_cast<uint32_t>(sums[16 / kParts * p + i]);
        reinterpret_cast<int32_t*>(tail)[p] = static_cast<int32_t>(0U - kOffset * sum);
      }
    }
  }

  template <int kPart, int M>
  OUTRIDER_INLINE void AddPart(const uint8_t* block, int half, int slice, const typename Weights::Parts& parts,
                               const Panel& panel, typename S::Floats (&dots)[M]) {
    typename S::Bytes w[kQuads];
    Weights::template Load<S, kPart>(block, slice, half, parts, w);
    const int part = half * (kParts / 2) + kPart;
    const auto scale = S::ToFloats(S::LoadI8(parts.scales + part * kTileRows + slice * S::kLanes));
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot =
          kHasMins ? S::Zero() : S::Broadcast(reinterpret_cast<const int32_t*>(panel.tails + 4 * kParts * m)[part]);
#pragma GCC unroll 8
      for (int j = 0; j < kQuads; ++j) {
        const int8_t* x = panel.values + m * 256 + part * kPartValues + 4 * j;
        Weights::kSmall ? S::Dot(dot, w[j], x) : S::DotOffset(dot, w[j], x);
      }
      dots[m] = S::Fma(S::ToFloats(dot), scale, dots[m]);
    }
  }

  template <int M>
  OUTRIDER_INLINE void AddBlock(const uint8_t* block, int slice, const Panel& panel, Sums<M>& sums) {
    typename Weights::Parts parts;
    Weights::Unpack(block, parts);
    typename S::Floats dots[M];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) dots[m] = S::ZeroFloats();
    for (int half = 0; half < 2; ++half) {
      AddPart<0, M>(block, half, slice, parts, panel, dots);
      AddPart<1, M>(block, half, slice, parts, panel, dots);
      AddPart<2, M>(block, half, slice, parts, panel, dots);
      AddPart<3, M>(block, half, slice, parts, panel, dots);
      if constexpr (kParts == 16) {
        AddPart<4, M>(block, half, slice, parts, panel, dots);
        AddPart<5, M>(block, half, slice, parts, panel, dots);
        AddPart<6, M>(block, half, slice, parts, panel, dots);
        AddPart<7, M>(block, half, slice, parts, panel, dots);
      }
    }
    auto scale = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kScale) + slice * S::kLanes);
    if constexpr (requires { Weights::kUnit; }) scale = S::Multiply(scale, S::Broadcast(Weights::kUnit));
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      sums.sum[m] = S::Fma(dots[m], S::Multiply(scale, S::Broadcast(panel.scales[m])), sums.sum[m]);
    }
    if constexpr (kHasMins) SubtractMins<M>(block, slice, parts.mins, panel, sums);
  }

  template <int M>
  OUTRIDER_INLINE void SubtractMins(const uint8_t* block, int slice, const uint8_t* mins, const Panel& panel,
                                    Sums<M>& sums) {
    typename S::Ints pairs[kParts / 2];
#pragma GCC unroll 8
    for (int p = 0; p < kParts / 2; ++p) {
      const uint8_t* min = mins + 2 * p * kTileRows + slice * S::kLanes;
      pairs[p] = S::PairsOf(S::LoadU8(min), S::LoadU8(min + kTileRows));
    }
    const auto scale = S::LoadHalf(reinterpret_cast<const uint16_t*>(block + Layout::kMin) + slice * S::kLanes);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      auto dot = S::Zero();
      const auto* part_sums = reinterpret_cast<const int16_t*>(panel.tails + 32 * m);
#pragma GCC unroll 8
      for (int p = 0; p < kParts / 2; ++p) S::DotPairs(dot, pairs[p], part_sums + 2 * p);
      sums.mins[m] = S::Fma(S::ToFloats(dot), S::Multiply(scale, S::Broadcast(panel.scales[m])), sums.mins[m]);
    }
  }
};

// ---- weights that are floats: activations stay as they are ----

template <typename S>
struct FloatColumns {
  static constexpr int kValues = 32;
  static constexpr size_t kColumnBytes = kValues * sizeof(float);
  const float* values;
  FloatColumns(const uint8_t* block, int) : values(reinterpret_cast<const float*>(block)) {}
};

template <typename S, ggml_type kWeights>
struct FormatFloats {
  static constexpr ggml_type kType = kWeights;
  static constexpr size_t kValueBytes = kType == GGML_TYPE_F32 ? 4 : 2;
  using Layout = FloatBlock<kValueBytes>;
  using Panel = FloatColumns<S>;
  // Nothing is decoded, so that more accumulators fit into registers, and each is a chain that has to wait for itself.
  static constexpr int kMaxColumns = S::kPanelColumns < 8 ? 8 : S::kPanelColumns;
  template <int M>
  struct Sums {
    typename S::Floats sum[M];
  };

  OUTRIDER_INLINE void Quantize(const float* x, uint8_t* block, int, int column) {
    __builtin_memcpy(block + Panel::kColumnBytes * static_cast<size_t>(column), x, Panel::kColumnBytes);
  }

  OUTRIDER_INLINE typename S::Floats Load(const uint8_t* from) {
    if constexpr (kType == GGML_TYPE_F32) {
      return S::Load(reinterpret_cast<const float*>(from));
    } else if constexpr (kType == GGML_TYPE_F16) {
      return S::LoadHalf(reinterpret_cast<const uint16_t*>(from));
    } else {
      return S::LoadBrain(reinterpret_cast<const uint16_t*>(from));
    }
  }

  // Sums of 32 products are added up separately: this is more exact than one long chain, and the next block need not
  // wait for this one.
  template <int M>
  OUTRIDER_INLINE void AddBlock(const uint8_t* block, int slice, const Panel& panel, Sums<M>& sums) {
    typename S::Floats part[M];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) part[m] = S::ZeroFloats();
#pragma GCC unroll 4
    for (int i = 0; i < Panel::kValues; ++i) {
      const auto w = Load(block + static_cast<size_t>(i * kTileRows + slice * S::kLanes) * kValueBytes);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) {
        part[m] = S::Fma(w, S::Broadcast(panel.values[m * Panel::kValues + i]), part[m]);
      }
    }
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) sums.sum[m] = S::Add(sums.sum[m], part[m]);
  }
};

// ---- a tile times a panel ----

template <typename S, typename Sums, int M>
OUTRIDER_INLINE typename S::Floats Result(const Sums& sums, int m) {
  if constexpr (requires { sums.mins; }) {
    return S::Subtract(sums.sum[m], sums.mins[m]);
  } else {
    return sums.sum[m];
  }
}

template <typename S, typename Format, int M>
void MultiplyTile(const uint8_t* tile, int64_t blocks, const uint8_t* panel, float* const* out) {
  constexpr size_t kPanelBlock = Format::Panel::kColumnBytes * M;
  for (int slice = 0; slice < kTileRows / S::kLanes; ++slice) {
    typename Format::template Sums<M> sums;
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      sums.sum[m] = S::ZeroFloats();
      if constexpr (requires { sums.mins; }) sums.mins[m] = S::ZeroFloats();
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t* block = tile + b * Format::Layout::kBytes;
      if (slice == 0) {
#pragma GCC unroll 64
        for (size_t line = 0; line < Format::Layout::kBytes; line += 64) {
          __builtin_prefetch(block + kPrefetchBytes + line);
        }
      }
      Format::template AddBlock<M>(block, slice, typename Format::Panel(panel + b * kPanelBlock, M), sums);
    }
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      S::Store(out[m] + slice * S::kLanes, Result<S, typename Format::template Sums<M>, M>(sums, m));
    }
  }
}

template <typename S, typename Format>
void QuantizeColumn(const float* x, int64_t first, int64_t last, uint8_t* panel, int columns, int column) {
  const size_t block_bytes = Format::Panel::kColumnBytes * static_cast<size_t>(columns);
  for (int64_t b = first; b < last; ++b) {
    Format::Quantize(x + b * Format::Panel::kValues, panel + b * block_bytes, columns, column);
  }
}

// There are no kernels for panels of 9 to 15 columns: PanelWidth divides these columns into two panels.
constexpr bool HasKernelFor(int columns, int max_columns) {
  return columns >= 1 && columns <= max_columns && (columns <= 8 || columns == max_columns);
}

template <typename S, typename Format, int M>
constexpr MatmulKernels::Multiply MultiplyFor() {
  if constexpr (HasKernelFor(M, Format::kMaxColumns)) {
    return MultiplyTile<S, Format, M>;
  } else {
    return nullptr;
  }
}

template <typename S, typename Format>
constexpr MatmulKernels MatmulKernelsOf() {
  return {Format::kType,
          Format::Panel::kValues,
          Format::kMaxColumns,
          Format::Panel::kColumnBytes,
          QuantizeColumn<S, Format>,
          {nullptr, MultiplyFor<S, Format, 1>(), MultiplyFor<S, Format, 2>(), MultiplyFor<S, Format, 3>(),
           MultiplyFor<S, Format, 4>(), MultiplyFor<S, Format, 5>(), MultiplyFor<S, Format, 6>(),
           MultiplyFor<S, Format, 7>(), MultiplyFor<S, Format, 8>(), nullptr, nullptr, nullptr, nullptr, nullptr,
           nullptr, nullptr, MultiplyFor<S, Format, 16>()}};
}

// The kernels of one instruction set for all weight types.
template <typename S>
inline constexpr MatmulKernels kMatmulKernels[] = {
    MatmulKernelsOf<S, Format32<S, Q4_0Weights>>(),
    MatmulKernelsOf<S, Format32<S, Q4_1Weights>>(),
    MatmulKernelsOf<S, Format32<S, Q8_0Weights>>(),
    MatmulKernelsOf<S, Format32<S, Iq4NlWeights>>(),
    MatmulKernelsOf<S, Format32<S, Q5_0Weights>>(),
    MatmulKernelsOf<S, Format32<S, Q5_1Weights>>(),
    MatmulKernelsOf<S, Format32<S, Mxfp4Weights>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq4XsWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Q2KWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Q3KWeights>>(),
    MatmulKernelsOf<S, FormatQ45K<S, false>>(),
    MatmulKernelsOf<S, FormatQ45K<S, true>>(),
    MatmulKernelsOf<S, FormatQ6K<S>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq2XxsWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq2XsWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq2SWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq3XxsWeights>>(),
    MatmulKernelsOf<S, FormatParts<S, Iq3SWeights>>(),
    MatmulKernelsOf<S, FormatFloats<S, GGML_TYPE_F32>>(),
    MatmulKernelsOf<S, FormatFloats<S, GGML_TYPE_F16>>(),
    MatmulKernelsOf<S, FormatFloats<S, GGML_TYPE_BF16>>(),
};

// Whether there are kernels for every type that weights can be packed as. Those who multiply packed weights rely on it
// (matmul_op.cc).
template <typename S>
consteval bool HasKernelsForAllLayouts() {
  for (const ggml_type type : kTypesWithLayout) {
    bool found = false;
    for (const MatmulKernels& kernels : kMatmulKernels<S>) found = found || kernels.type == type;
    if (!found) return false;
  }
  return true;
}

}  // namespace outrider::kernels
