#include "kernels/layout.h"

#define GGML_COMMON_DECL_C
#include <ggml-common.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>

namespace outrider::kernels {
namespace {

// One block of each of the 16 rows of a tile; zeros for the rows that the matrix does not have.
template <typename Block>
struct BlockRows {
  const Block* first;
  int64_t stride;  // blocks of a row
  int64_t rows;
  const Block& operator[](int row) const {
    static constexpr Block kZeros{};
    return row < rows ? first[row * stride] : kZeros;
  }
};

void PackNibbles(int row, const uint8_t* values, uint8_t* to) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) {
      to[j * kQuadBytes + row * 4 + i] = static_cast<uint8_t>(values[4 * j + i] | values[16 + 4 * j + i] << 4);
    }
  }
}

// ggml keeps value i and i + 16 of a block of 32 in one byte, as the tiles do.
void CopyNibbles(int row, const uint8_t* from, uint8_t* to) {
  for (int j = 0; j < 4; ++j) std::memcpy(to + j * kQuadBytes + row * 4, from + 4 * j, 4);
}

void PackBlock(const BlockRows<block_q4_0>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Q4_0Block::kScales + 2 * r, &rows[r].d, 2);
    CopyNibbles(r, rows[r].qs, to + Q4_0Block::kNibbles);
  }
}

void PackBlock(const BlockRows<block_iq4_nl>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Iq4NlBlock::kScales + 2 * r, &rows[r].d, 2);
    CopyNibbles(r, rows[r].qs, to + Iq4NlBlock::kNibbles);
  }
}

void PackBlock(const BlockRows<block_q4_1>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Q4_1Block::kScales + 2 * r, &rows[r].d, 2);
    std::memcpy(to + Q4_1Block::kMins + 2 * r, &rows[r].m, 2);
    CopyNibbles(r, rows[r].qs, to + Q4_1Block::kNibbles);
  }
}

// The fifth bit of value i of a block of 32 is bit i of its `qh`.
void PackFifthBits(int row, const uint8_t* bits, uint8_t* to) {
  for (int at = 0; at < 4; ++at) {
    uint8_t byte = 0;
    for (int j = 0; j < 8; ++j) {
      const int i = 4 * j + at;
      byte |= static_cast<uint8_t>((bits[i / 8] >> (i % 8) & 1) << j);
    }
    to[row * 4 + at] = byte;
  }
}

void PackBlock(const BlockRows<block_q5_0>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Q5_0Block::kScales + 2 * r, &rows[r].d, 2);
    CopyNibbles(r, rows[r].qs, to + Q5_0Block::kNibbles);
    PackFifthBits(r, rows[r].qh, to + Q5_0Block::kFifthBits);
  }
}

void PackBlock(const BlockRows<block_q5_1>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Q5_1Block::kScales + 2 * r, &rows[r].d, 2);
    std::memcpy(to + Q5_1Block::kMins + 2 * r, &rows[r].m, 2);
    CopyNibbles(r, rows[r].qs, to + Q5_1Block::kNibbles);
    PackFifthBits(r, rows[r].qh, to + Q5_1Block::kFifthBits);
  }
}

void PackBlock(const BlockRows<block_mxfp4>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    to[Mxfp4Block::kExponents + static_cast<size_t>(r)] = rows[r].e;
    CopyNibbles(r, rows[r].qs, to + Mxfp4Block::kNibbles);
  }
}

void PackBlock(const BlockRows<block_q8_0>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Q8_0Block::kScales + 2 * r, &rows[r].d, 2);
    for (int j = 0; j < 8; ++j) {
      uint32_t quad;
      std::memcpy(&quad, rows[r].qs + 4 * j, 4);
      quad ^= 0x80808080U;
      std::memcpy(to + Q8_0Block::kValues + j * kQuadBytes + 4 * r, &quad, 4);
    }
  }
}

// The 6-bit scales and mins of the parts, as Q4_K and Q5_K pack them into 12 bytes.
struct PartScales {
  uint8_t scale[8], min[8];
};
PartScales UnpackPartScales(const uint8_t* packed) {
  PartScales parts;
  for (int p = 0; p < 4; ++p) {
    parts.scale[p] = packed[p] & 63;
    parts.min[p] = packed[p + 4] & 63;
    parts.scale[p + 4] = static_cast<uint8_t>((packed[p + 8] & 15) | (packed[p] >> 6) << 4);
    parts.min[p + 4] = static_cast<uint8_t>(packed[p + 8] >> 4 | (packed[p + 4] >> 6) << 4);
  }
  return parts;
}

template <typename Layout, typename Block>
void PackScalesOfParts(int row, const Block& block, uint8_t* to) {
  std::memcpy(to + Layout::kScale + 2 * row, &block.d, 2);
  std::memcpy(to + Layout::kMin + 2 * row, &block.dmin, 2);
  const PartScales parts = UnpackPartScales(block.scales);
  for (int p = 0; p < 8; ++p) {
    to[Layout::kPartNibbles + 16 * p + row] = static_cast<uint8_t>((parts.scale[p] & 15) | (parts.min[p] & 15) << 4);
  }
  for (int p = 0; p < 4; ++p) {
    to[Layout::kPartUpperBits + 16 * p + row] = static_cast<uint8_t>(
        parts.scale[p] >> 4 | (parts.min[p] >> 4) << 2 | (parts.scale[p + 4] >> 4) << 4 | (parts.min[p + 4] >> 4) << 6);
  }
}

// Parts 2c and 2c + 1 share the 32 bytes at 32·c in ggml's block.
void UnpackPart(const uint8_t* nibbles, int part, uint8_t* values) {
  const uint8_t* bytes = nibbles + 32 * (part / 2);
  for (int i = 0; i < 32; ++i) values[i] = part % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
}

void PackBlock(const BlockRows<block_q4_K>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    PackScalesOfParts<Q4KBlock>(r, rows[r], to);
    for (int p = 0; p < 8; ++p) {
      uint8_t values[32];
      UnpackPart(rows[r].qs, p, values);
      PackNibbles(r, values, to + Q4KBlock::kNibbles + p * 4 * kQuadBytes);
    }
  }
}

void PackBlock(const BlockRows<block_q5_K>& rows, uint8_t* to) {
  std::memset(to + Q5KBlock::kFifthBits, 0, 8 * kQuadBytes);
  for (int r = 0; r < kTileRows; ++r) {
    PackScalesOfParts<Q5KBlock>(r, rows[r], to);
    for (int p = 0; p < 8; ++p) {
      uint8_t values[32];
      UnpackPart(rows[r].qs, p, values);
      PackNibbles(r, values, to + Q5KBlock::kNibbles + p * 4 * kQuadBytes);
      for (int i = 0; i < 32; ++i) {
        const int bit = rows[r].qh[i] >> p & 1;
        to[Q5KBlock::kFifthBits + i / 4 * kQuadBytes + r * 4 + i % 4] |= static_cast<uint8_t>(bit << p);
      }
    }
  }
}

void PackBlock(const BlockRows<block_q6_K>& rows, uint8_t* to) {
  std::memset(to, 0, Q6KBlock::kPartScales);
  for (int r = 0; r < kTileRows; ++r) {
    const block_q6_K& block = rows[r];
    std::memcpy(to + Q6KBlock::kScale + 2 * r, &block.d, 2);
    for (int p = 0; p < 16; ++p) to[Q6KBlock::kPartScales + 16 * p + r] = static_cast<uint8_t>(block.scales[p]);
    for (int i = 0; i < 256; ++i) {
      // In ggml's block: halves of 128 values; in each, 32 columns of four values.
      const int half = i / 128, column = i % 32, quarter = i % 128 / 32;
      const int low = block.ql[64 * half + 32 * (quarter % 2) + column] >> (4 * (quarter / 2)) & 15;
      const int high = block.qh[32 * half + column] >> (2 * quarter) & 3;
      const int group = i / 64, quad = i % 64 / 4, at = r * 4 + i % 4;
      to[Q6KBlock::kNibbles + (group * 8 + quad % 8) * kQuadBytes + at] |=
          static_cast<uint8_t>(low << (4 * (quad / 8)));
      to[Q6KBlock::kUpperBits + (group * 4 + quad % 4) * kQuadBytes + at] |=
          static_cast<uint8_t>(high << (2 * (quad / 4)));
    }
  }
}

// Scales of 6 bits of all parts of a row.
template <typename Layout, int kParts>
void PackSixBitScales(int row, const uint8_t (&scales)[kParts], uint8_t* to) {
  constexpr int kQuarter = kParts / 4;
  for (int p = 0; p < kParts; ++p) {
    const int quarter = p / kQuarter, at = 16 * (p % kQuarter) + row;
    to[Layout::kPartNibbles + 16 * kQuarter * (quarter % 2) + at] |=
        static_cast<uint8_t>((scales[p] & 15) << (4 * (quarter / 2)));
    to[Layout::kPartUpperBits + at] |= static_cast<uint8_t>((scales[p] >> 4) << (2 * quarter));
  }
}

void PackBlock(const BlockRows<block_iq4_xs>& rows, uint8_t* to) {
  std::memset(to, 0, Iq4XsBlock::kNibbles);
  for (int r = 0; r < kTileRows; ++r) {
    const block_iq4_xs& block = rows[r];
    std::memcpy(to + Iq4XsBlock::kScale + 2 * r, &block.d, 2);
    uint8_t scales[8];
    for (int p = 0; p < 8; ++p) {
      scales[p] =
          static_cast<uint8_t>((block.scales_l[p / 2] >> (4 * (p % 2)) & 15) | (block.scales_h >> (2 * p) & 3) << 4);
      CopyNibbles(r, block.qs + 16 * p, to + Iq4XsBlock::kNibbles + p * 4 * kQuadBytes);
    }
    PackSixBitScales<Iq4XsBlock>(r, scales, to);
  }
}

// Value i of a block of 256 with two bits for each: halves of 128 values; in each, 32 columns of four values.
int LowTwoBits(const uint8_t* bits, int i) {
  return bits[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
}
void PackLowTwoBits(int row, const uint8_t* bits, uint8_t* to) {
  for (int i = 0; i < 256; ++i) {
    const int group = i / 64, quad = i % 64 / 4;
    to[(group * 4 + quad % 4) * kQuadBytes + row * 4 + i % 4] |=
        static_cast<uint8_t>(LowTwoBits(bits, i) << (2 * (quad / 4)));
  }
}

void PackBlock(const BlockRows<block_q3_K>& rows, uint8_t* to) {
  std::memset(to, 0, Q3KBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    const block_q3_K& block = rows[r];
    std::memcpy(to + Q3KBlock::kScale + 2 * r, &block.d, 2);
    uint8_t scales[16];
    for (int p = 0; p < 16; ++p) {
      scales[p] = static_cast<uint8_t>((block.scales[p % 8] >> (4 * (p / 8)) & 15) |
                                       (block.scales[8 + p % 4] >> (2 * (p / 4)) & 3) << 4);
    }
    PackSixBitScales<Q3KBlock>(r, scales, to);
    PackLowTwoBits(r, block.qs, to + Q3KBlock::kLowBits);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, part = i % 128 / 16, quad = i % 16 / 4;
      const int bit = block.hmask[i % 32] >> (i / 32) & 1;
      to[Q3KBlock::kThirdBits + (half * 4 + quad) * kQuadBytes + r * 4 + i % 4] |= static_cast<uint8_t>(bit << part);
    }
  }
}

void PackBlock(const BlockRows<block_q2_K>& rows, uint8_t* to) {
  std::memset(to, 0, Q2KBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    const block_q2_K& block = rows[r];
    std::memcpy(to + Q2KBlock::kScale + 2 * r, &block.d, 2);
    std::memcpy(to + Q2KBlock::kMin + 2 * r, &block.dmin, 2);
    for (int p = 0; p < 16; ++p) to[Q2KBlock::kParts + 16 * p + r] = block.scales[p];
    PackLowTwoBits(r, block.qs, to + Q2KBlock::kLowBits);
  }
}

// Four signs of a row, or three and another bit.
void PackSigns(int row, int quad, int signs, uint8_t* words) {
  words[8 * quad + row / 2] |= static_cast<uint8_t>((signs & 15) << (4 * (row % 2)));
}
// The 7 signs of values 8·group to 8·group + 7, and a bit in the place of the eighth.
void PackSevenSigns(int row, int group, uint32_t signs, uint32_t bit, uint8_t* words) {
  PackSigns(row, 2 * group, static_cast<int>(signs & 15), words);
  PackSigns(row, 2 * group + 1, static_cast<int>((signs >> 4 & 7) | (bit & 1) << 3), words);
}
void PackEightSigns(int row, int group, int signs, uint8_t* words) {
  PackSigns(row, 2 * group, signs, words);
  PackSigns(row, 2 * group + 1, signs >> 4, words);
}
// A scale of 4 bits of one of `parts` parts.
void PackFourBitScale(int row, int part, int parts, int scale, uint8_t* to) {
  to[16 * (part % (parts / 2)) + row] |= static_cast<uint8_t>(scale << (part < parts / 2 ? 0 : 4));
}
// What the XXS types have for 32 values: the signs of four groups, and a scale.
void PackSignsAndScale(int row, int part, const void* from, uint8_t* words) {
  uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  for (int l = 0; l < 4; ++l) PackSevenSigns(row, 4 * part + l, bits >> (7 * l) & 127, bits >> (28 + l), words);
}

void PackBlock(const BlockRows<block_iq2_xxs>& rows, uint8_t* to) {
  std::memset(to, 0, Iq2XxsBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Iq2XxsBlock::kScale + 2 * r, &rows[r].d, 2);
    for (int p = 0; p < 8; ++p) {
      uint8_t indices[4];
      std::memcpy(indices, rows[r].qs + 4 * p, sizeof indices);
      for (int l = 0; l < 4; ++l) to[Iq2XxsBlock::kIndices + 16 * (4 * p + l) + r] = indices[l];
      PackSignsAndScale(r, p, rows[r].qs + 4 * p + 2, to + Iq2XxsBlock::kSigns);
    }
  }
}

void PackBlock(const BlockRows<block_iq2_xs>& rows, uint8_t* to) {
  std::memset(to, 0, Iq2XsBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    const block_iq2_xs& block = rows[r];
    std::memcpy(to + Iq2XsBlock::kScale + 2 * r, &block.d, 2);
    for (int group = 0; group < 32; ++group) {
      const uint32_t bits = block.qs[group];
      to[Iq2XsBlock::kIndices + 16 * group + r] = static_cast<uint8_t>(bits);
      PackSevenSigns(r, group, bits >> 9, bits >> 8, to + Iq2XsBlock::kSigns);
    }
    for (int p = 0; p < 16; ++p) {
      PackFourBitScale(r, p, 16, block.scales[p / 2] >> (4 * (p % 2)) & 15, to + Iq2XsBlock::kPartScales);
    }
  }
}

void PackBlock(const BlockRows<block_iq2_s>& rows, uint8_t* to) {
  std::memset(to, 0, Iq2SBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    const block_iq2_s& block = rows[r];
    std::memcpy(to + Iq2SBlock::kScale + 2 * r, &block.d, 2);
    for (int group = 0; group < 32; ++group) {
      to[Iq2SBlock::kIndices + 16 * group + r] = block.qs[group];
      PackEightSigns(r, group, block.qs[32 + group], to + Iq2SBlock::kSigns);
    }
    for (int p = 0; p < 8; ++p) to[Iq2SBlock::kUpperBits + 16 * p + r] = block.qh[p];
    for (int p = 0; p < 16; ++p) {
      PackFourBitScale(r, p, 16, block.scales[p / 2] >> (4 * (p % 2)) & 15, to + Iq2SBlock::kPartScales);
    }
  }
}

void PackBlock(const BlockRows<block_iq3_xxs>& rows, uint8_t* to) {
  std::memset(to, 0, Iq3XxsBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    std::memcpy(to + Iq3XxsBlock::kScale + 2 * r, &rows[r].d, 2);
    for (int quad = 0; quad < 64; ++quad) to[Iq3XxsBlock::kIndices + 16 * quad + r] = rows[r].qs[quad];
    for (int p = 0; p < 8; ++p) PackSignsAndScale(r, p, rows[r].qs + 64 + 4 * p, to + Iq3XxsBlock::kSigns);
  }
}

void PackBlock(const BlockRows<block_iq3_s>& rows, uint8_t* to) {
  std::memset(to, 0, Iq3SBlock::kBytes);
  for (int r = 0; r < kTileRows; ++r) {
    const block_iq3_s& block = rows[r];
    std::memcpy(to + Iq3SBlock::kScale + 2 * r, &block.d, 2);
    for (int quad = 0; quad < 64; ++quad) to[Iq3SBlock::kIndices + 16 * quad + r] = block.qs[quad];
    for (int group = 0; group < 32; ++group) PackEightSigns(r, group, block.signs[group], to + Iq3SBlock::kSigns);
    for (int p = 0; p < 8; ++p) {
      to[Iq3SBlock::kUpperBits + 16 * p + r] = block.qh[p];
      PackFourBitScale(r, p, 8, block.scales[p / 2] >> (4 * (p % 2)) & 15, to + Iq3SBlock::kPartScales);
    }
  }
}

template <typename T>
struct FloatValues {
  T values[32];
};

template <typename T>
void PackBlock(const BlockRows<FloatValues<T>>& rows, uint8_t* to) {
  for (int r = 0; r < kTileRows; ++r) {
    for (int i = 0; i < 32; ++i) std::memcpy(to + (i * kTileRows + r) * sizeof(T), &rows[r].values[i], sizeof(T));
  }
}

template <typename Block, typename Layout, int64_t kBlockValues>
void PackAll(const void* from, int64_t rows, int64_t row_values, uint8_t* to) {
  static_assert(Layout::kBytes == kTileRows * sizeof(Block), "a tile is as large as its rows");
  const int64_t blocks = row_values / kBlockValues;
  const auto* source = static_cast<const Block*>(from);
  for (int64_t row = 0; row < rows; row += kTileRows) {
    for (int64_t b = 0; b < blocks; ++b, to += Layout::kBytes) {
      PackBlock(BlockRows<Block>{source + row * blocks + b, blocks, rows - row}, to);
    }
  }
}

struct TypeLayout {
  ggml_type type;
  int64_t block_values;
  void (*pack)(const void* from, int64_t rows, int64_t row_values, uint8_t* to);
};

constexpr TypeLayout kLayouts[] = {
    {GGML_TYPE_Q4_0, QK4_0, PackAll<block_q4_0, Q4_0Block, QK4_0>},
    {GGML_TYPE_Q4_1, QK4_1, PackAll<block_q4_1, Q4_1Block, QK4_1>},
    {GGML_TYPE_Q8_0, QK8_0, PackAll<block_q8_0, Q8_0Block, QK8_0>},
    {GGML_TYPE_IQ4_NL, QK4_NL, PackAll<block_iq4_nl, Iq4NlBlock, QK4_NL>},
    {GGML_TYPE_Q5_0, QK5_0, PackAll<block_q5_0, Q5_0Block, QK5_0>},
    {GGML_TYPE_Q5_1, QK5_1, PackAll<block_q5_1, Q5_1Block, QK5_1>},
    {GGML_TYPE_MXFP4, QK_MXFP4, PackAll<block_mxfp4, Mxfp4Block, QK_MXFP4>},
    {GGML_TYPE_IQ4_XS, QK_K, PackAll<block_iq4_xs, Iq4XsBlock, QK_K>},
    {GGML_TYPE_Q2_K, QK_K, PackAll<block_q2_K, Q2KBlock, QK_K>},
    {GGML_TYPE_Q3_K, QK_K, PackAll<block_q3_K, Q3KBlock, QK_K>},
    {GGML_TYPE_Q4_K, QK_K, PackAll<block_q4_K, Q4KBlock, QK_K>},
    {GGML_TYPE_Q5_K, QK_K, PackAll<block_q5_K, Q5KBlock, QK_K>},
    {GGML_TYPE_IQ2_XXS, QK_K, PackAll<block_iq2_xxs, Iq2XxsBlock, QK_K>},
    {GGML_TYPE_IQ2_XS, QK_K, PackAll<block_iq2_xs, Iq2XsBlock, QK_K>},
    {GGML_TYPE_IQ2_S, QK_K, PackAll<block_iq2_s, Iq2SBlock, QK_K>},
    {GGML_TYPE_IQ3_XXS, QK_K, PackAll<block_iq3_xxs, Iq3XxsBlock, QK_K>},
    {GGML_TYPE_IQ3_S, QK_K, PackAll<block_iq3_s, Iq3SBlock, QK_K>},
    {GGML_TYPE_F32, 32, PackAll<FloatValues<float>, FloatBlock<4>, 32>},
    {GGML_TYPE_F16, 32, PackAll<FloatValues<uint16_t>, FloatBlock<2>, 32>},
    {GGML_TYPE_BF16, 32, PackAll<FloatValues<uint16_t>, FloatBlock<2>, 32>},
    {GGML_TYPE_Q6_K, QK_K, PackAll<block_q6_K, Q6KBlock, QK_K>},
};

static_assert(std::ranges::equal(kLayouts, kTypesWithLayout, {}, &TypeLayout::type),
              "kTypesWithLayout (layout.h) and kLayouts must have the same types in the same order");

const TypeLayout* FindLayout(ggml_type type) {
  const auto* const found = std::find_if(std::begin(kLayouts), std::end(kLayouts),
                                         [type](const TypeLayout& layout) { return layout.type == type; });
  return found != std::end(kLayouts) ? found : nullptr;
}

}  // namespace

bool HasLayout(ggml_type type) {
  return FindLayout(type) != nullptr;
}

bool HasLayout(const ggml_tensor* weights) {
  const TypeLayout* layout = FindLayout(weights->type);
  // RWKV-6 takes this one apart.
  if (layout == nullptr || std::strstr(weights->name, "time_mix_w2") != nullptr) return false;
  return weights->ne[0] % layout->block_values == 0 && weights->ne[3] == 1 && ggml_is_contiguous(weights);
}

int64_t BlockValues(ggml_type type) {
  const TypeLayout* layout = FindLayout(type);
  assert(layout != nullptr);
  return layout->block_values;
}

size_t TileBytes(ggml_type type, int64_t row_values) {
  return kTileRows * ggml_row_size(type, row_values);
}

size_t MatrixBytes(ggml_type type, int64_t row_values, int64_t rows) {
  return static_cast<size_t>(TilesOf(rows)) * TileBytes(type, row_values);
}

void Pack(ggml_type type, const void* from, int64_t rows, int64_t row_values, uint8_t* to) {
  const TypeLayout* layout = FindLayout(type);
  assert(layout != nullptr);
  layout->pack(from, rows, row_values, to);
}

}  // namespace outrider::kernels
