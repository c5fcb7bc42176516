// The layout of weights in memory for the kernels: tiles of 16 rows, each a sequence of blocks of 32 or 256 values. A
// tile has as many bytes as its 16 rows have in the file; the last tile of a matrix may have rows that are all zeros.
// docs/KERNELS.md has pictures.
//
// A *quad* is four neighbouring values of each of the 16 rows: 64 bytes once decoded, row by row, which is what the
// instruction VPDPBUSD multiplies with four values of the activations. The 8 quads of 32 values follow one another.
//
// Nibbles: 64 bytes hold quad j in their low and quad j + 4 in their high halves. Further bits of a value lie in
// planes: 64 bytes hold one bit of eight quads (Q5_K) or two bits of four (Q6_K).
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

inline constexpr int kTileRows = 16;
inline constexpr int kQuadBytes = 4 * kTileRows;

// Where the parts of a block are, in bytes from its start.
struct Q4_0Block {
  static constexpr size_t kScales = 0, kNibbles = 32, kBytes = 288;
};
struct Q4_1Block {
  static constexpr size_t kScales = 0, kMins = 32, kNibbles = 64, kBytes = 320;
};
struct Q5_0Block {
  static constexpr size_t kScales = 0, kNibbles = 32, kFifthBits = 288, kBytes = 352;  // bit j: of quad j
};
struct Q5_1Block {
  static constexpr size_t kScales = 0, kMins = 32, kNibbles = 64, kFifthBits = 320, kBytes = 384;
};
struct Q8_0Block {
  static constexpr size_t kScales = 0, kValues = 32, kBytes = 544;  // values with 128 added
};
using Iq4NlBlock = Q4_0Block;  // nibbles are indices into a table
struct Mxfp4Block {
  static constexpr size_t kExponents = 0, kNibbles = 16, kBytes = 272;  // indices again; a scale is a power of two
};
// 256 values. Scales and mins of the 8 parts of 32 have 6 bits: 4 in nibbles (part p of 16 rows at 16·p: the scale low,
// the min high), 2 in `kUpperBits` (part p at 16·(p mod 4): from bit 0 the scale's and min's of parts 0-3, from bit 4
// those of 4-7).
struct Q4KBlock {
  static constexpr size_t kScale = 0, kMin = 32, kPartNibbles = 64, kPartUpperBits = 192, kNibbles = 256, kBytes = 2304;
};
struct Q5KBlock {
  static constexpr size_t kScale = 0, kMin = 32, kPartNibbles = 64, kPartUpperBits = 192, kNibbles = 256,
                          kFifthBits = 2304,
                          kBytes = 2816;  // the fifth bits of quad j of part p: bit p of the 64 bytes at 64·j
};
// 256 values in 4 groups of 64, each with 16 quads: nibbles of quads j and j + 8 together, upper bits of j, j+4, j+8,
// j+12.
struct Q6KBlock {
  static constexpr size_t kNibbles = 0, kUpperBits = 2048, kPartScales = 3072, kScale = 3328, kBytes = 3360;
};
// 256 values with scales of 6 bits for parts of 32 (IQ4_XS) or 16 (Q3_K). Parts fall into four quarters. Byte i of
// `kPartNibbles` has bits 0-3 of scales of the first quarter (low) and the third (high), those of the second and fourth
// follow; byte i of `kPartUpperBits` has bits 4-5 for all four, the first quarter's lowest.
struct Iq4XsBlock {
  static constexpr size_t kScale = 0, kPartNibbles = 32, kPartUpperBits = 96, kNibbles = 128, kBytes = 2176;
};
struct Q3KBlock {
  static constexpr size_t kScale = 0, kPartNibbles = 32, kPartUpperBits = 160,
                          kLowBits = 224,  // two bits of quads j, j + 4, j + 8, j + 12 of each 64 values
      kThirdBits = 1248,                   // in halves of 128 values: bit q of part q
      kBytes = 1760;
};
struct Q2KBlock {
  static constexpr size_t kScale = 0, kMin = 32, kParts = 64,  // part p at 16·p: the scale low, the min high
      kLowBits = 320, kBytes = 1344;
};
// Types with grids (grids.h): four or eight values are an index, with a sign for each value. A *sign word* is the 64
// signs of a quad, from row 0 on. Where signs of eight values are 7 bits in the file (the eighth makes their number
// even), the second of their sign words has three signs of each row and a bit of something else: the scale (*XXS: bit l
// of it for eighth values 8·l of a part of 32) or the index (IQ2_XS: its ninth bit). Scales of 4 bits, a byte for two
// parts: the part of the first half of the block low, that of the second half high. Upper bits: a byte of each row for
// 32 values, as in the file.
struct Iq2XxsBlock {
  static constexpr size_t kScale = 0, kSigns = 32, kIndices = 544, kBytes = 1056;
};
struct Iq2XsBlock {
  static constexpr size_t kScale = 0, kPartScales = 32, kSigns = 160, kIndices = 672, kBytes = 1184;
};
struct Iq2SBlock {
  static constexpr size_t kScale = 0, kPartScales = 32, kUpperBits = 160, kSigns = 288, kIndices = 800, kBytes = 1312;
};
struct Iq3XxsBlock {
  static constexpr size_t kScale = 0, kSigns = 32, kIndices = 544, kBytes = 1568;
};
struct Iq3SBlock {
  static constexpr size_t kScale = 0, kPartScales = 32, kUpperBits = 96, kSigns = 224, kIndices = 736, kBytes = 1760;
};

// 32 values as they are, value by value: each of 16 rows.
template <size_t kValueBytes>
struct FloatBlock {
  static constexpr size_t kValues = 0, kBytes = 32 * kTileRows * kValueBytes;
};

// All types that have a layout. Each of them has a line in the table of layout.cc, and each instruction set has kernels
// for all of them (kMatmulKernels in matmul.h); the compiler checks both.
inline constexpr ggml_type kTypesWithLayout[] = {
    GGML_TYPE_Q4_0,    GGML_TYPE_Q4_1,   GGML_TYPE_Q8_0,  GGML_TYPE_IQ4_NL,  GGML_TYPE_Q5_0,  GGML_TYPE_Q5_1,
    GGML_TYPE_MXFP4,   GGML_TYPE_IQ4_XS, GGML_TYPE_Q2_K,  GGML_TYPE_Q3_K,    GGML_TYPE_Q4_K,  GGML_TYPE_Q5_K,
    GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S, GGML_TYPE_F32,
    GGML_TYPE_F16,     GGML_TYPE_BF16,   GGML_TYPE_Q6_K,
};

// Whether there is a layout for this type, and for weights of this shape.
bool HasLayout(ggml_type type);
bool HasLayout(const ggml_tensor* weights);

constexpr int64_t TilesOf(int64_t rows) {
  return (rows + kTileRows - 1) / kTileRows;
}
int64_t BlockValues(ggml_type type);  // a row has a multiple of these
size_t TileBytes(ggml_type type, int64_t row_values);
size_t MatrixBytes(ggml_type type, int64_t row_values, int64_t rows);  // of all its tiles

// Packs a matrix of `rows` rows of `row_values` values, which lie one after the other as in the file, into tiles.
void Pack(ggml_type type, const void* from, int64_t rows, int64_t row_values, uint8_t* to);

}  // namespace outrider::kernels
