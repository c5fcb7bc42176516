// How the weight types lie in memory, seen by the 32 threads of a warp that multiply 16 rows of a matrix.
//
// A warp walks along its rows in steps. A step holds one or several blocks of 32 weights. In the tensor cores' layout
// four threads share a row: thread `quad` (0 ... 3) holds 8 weights of each block, those that follow kFirst(quad) and
// kSecond(quad) (4 each). Load() fetches what the thread needs of a step; Block() makes the 8 weights of a block from
// it, as signed bytes. A weight is scale * byte + min.
#pragma once

#include <common.cuh>
#include <cstdint>

namespace outrider::kernels::cuda {

// Loads from addresses that are only aligned to two bytes.
static __device__ __forceinline__ uint32_t LoadHalves(const void* address) {
  const auto* halves = static_cast<const uint16_t*>(address);
  return static_cast<uint32_t>(halves[0]) | (static_cast<uint32_t>(halves[1]) << 16);
}

static __device__ __forceinline__ float HalfAt(const void* address) {
  return __half2float(*static_cast<const half*>(address));
}

// Four unsigned bytes less `offset`, as signed bytes. The bytes must be below 128, `offset` at most 128.
template <uint32_t offset>
static __device__ __forceinline__ int Centred(uint32_t bytes) {
  return static_cast<int>(((bytes | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u);
}

// The four lowest bits of `bits`, one in each byte, at bit 4.
static __device__ __forceinline__ uint32_t FifthBits(uint32_t bits) {
  return ((bits & 1u) << 4) | ((bits & 2u) << 11) | ((bits & 4u) << 18) | ((bits & 8u) << 25);
}

struct BlockWeights {
  int first, second;  // four signed bytes each
  float scale;
  float min;         // only for types with kHasMin
  int scale_second;  // only for types with kTwoScales: the integer scales of the two halves of the block
  int scale_first;
};

// Types in blocks of 32 whose bytes lie in one row of small structures.
struct SmallBlocks {
  static constexpr int kStepBlocks = 1;
  static constexpr bool kTwoScales = false;
  static __device__ __forceinline__ int First(int quad) { return 4 * quad; }
  static __device__ __forceinline__ int Second(int quad) { return 16 + 4 * quad; }
};

struct WeightsQ4_0 : SmallBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q4_0;
  static constexpr bool kHasMin = false;
  struct Step {
    uint32_t nibbles;
    float scale;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* block = row + static_cast<int64_t>(step) * 18;
    return {LoadHalves(block + 2 + 4 * quad), HalfAt(block)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int /*block*/, int /*step*/) {
    return {Centred<8>(s.nibbles & 0x0F0F0F0Fu), Centred<8>((s.nibbles >> 4) & 0x0F0F0F0Fu), s.scale, 0, 0, 0};
  }
};

struct WeightsQ4_1 : SmallBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q4_1;
  static constexpr bool kHasMin = true;
  struct Step {
    uint32_t nibbles;
    float scale, min;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* block = row + static_cast<int64_t>(step) * 20;
    return {LoadHalves(block + 4 + 4 * quad), HalfAt(block), HalfAt(block + 2)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int /*block*/, int /*step*/) {
    return {static_cast<int>(s.nibbles & 0x0F0F0F0Fu),
            static_cast<int>((s.nibbles >> 4) & 0x0F0F0F0Fu),
            s.scale,
            s.min,
            0,
            0};
  }
};

struct WeightsQ5_0 : SmallBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q5_0;
  static constexpr bool kHasMin = false;
  struct Step {
    uint32_t nibbles, fifth;
    float scale;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* block = row + static_cast<int64_t>(step) * 22;
    return {LoadHalves(block + 6 + 4 * quad), LoadHalves(block + 2) >> (4 * quad), HalfAt(block)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int /*block*/, int /*step*/) {
    return {Centred<16>((s.nibbles & 0x0F0F0F0Fu) | FifthBits(s.fifth)),
            Centred<16>(((s.nibbles >> 4) & 0x0F0F0F0Fu) | FifthBits(s.fifth >> 16)),
            s.scale,
            0,
            0,
            0};
  }
};

struct WeightsQ5_1 : SmallBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q5_1;
  static constexpr bool kHasMin = true;
  struct Step {
    uint32_t nibbles, fifth;
    float scale, min;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* block = row + static_cast<int64_t>(step) * 24;
    return {LoadHalves(block + 8 + 4 * quad), LoadHalves(block + 4) >> (4 * quad), HalfAt(block), HalfAt(block + 2)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int /*block*/, int /*step*/) {
    return {static_cast<int>((s.nibbles & 0x0F0F0F0Fu) | FifthBits(s.fifth)),
            static_cast<int>(((s.nibbles >> 4) & 0x0F0F0F0Fu) | FifthBits(s.fifth >> 16)),
            s.scale,
            s.min,
            0,
            0};
  }
};

struct WeightsQ8_0 : SmallBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q8_0;
  static constexpr bool kHasMin = false;
  struct Step {
    uint32_t first, second;
    float scale;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* block = row + static_cast<int64_t>(step) * 34;
    return {LoadHalves(block + 2 + 4 * quad), LoadHalves(block + 18 + 4 * quad), HalfAt(block)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int /*block*/, int /*step*/) {
    return {static_cast<int>(s.first), static_cast<int>(s.second), s.scale, 0, 0, 0};
  }
};

// 256 weights with 6-bit scales and mins for each block of 32; a step is two blocks, whose weights share bytes.
struct SuperBlocks {
  static constexpr int kStepBlocks = 2;
  static constexpr bool kHasMin = true;
  static constexpr bool kTwoScales = false;
  static __device__ __forceinline__ int First(int quad) { return 8 * quad; }
  static __device__ __forceinline__ int Second(int quad) { return 8 * quad + 4; }

  // The scale and the min of block `j` (0 ... 7), packed into 12 bytes.
  static __device__ __forceinline__ uint2 ScaleAndMin(const uint4& head, int j) {
    const uint32_t low = head.y, middle = head.z, high = head.w;
    if (j < 4) return {(low >> (8 * j)) & 63u, (middle >> (8 * j)) & 63u};
    const int shift = 8 * (j - 4);
    const uint32_t both = high >> shift;
    return {(both & 0x0Fu) | (((low >> shift) >> 2) & 0x30u),
            ((both >> 4) & 0x0Fu) | (((middle >> shift) >> 2) & 0x30u)};
  }
  static __device__ __forceinline__ void SetScales(const uint4& head, int j, BlockWeights* weights) {
    const uint2 packed = ScaleAndMin(head, j);
    const float2 both = __half22float2(*reinterpret_cast<const half2*>(&head.x));
    weights->scale = __fmul_rn(both.x, static_cast<float>(packed.x));
    weights->min = __fmul_rn(-both.y, static_cast<float>(packed.y));
  }
};

struct WeightsQ4_K : SuperBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q4_K;
  struct Step {
    uint4 head;
    uint2 nibbles;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* super = row + static_cast<int64_t>(step / 4) * 144;
    return {*reinterpret_cast<const uint4*>(super),
            *reinterpret_cast<const uint2*>(super + 16 + 32 * (step % 4) + 8 * quad)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int block, int step) {
    BlockWeights weights{};
    weights.first = static_cast<int>((s.nibbles.x >> (4 * block)) & 0x0F0F0F0Fu);
    weights.second = static_cast<int>((s.nibbles.y >> (4 * block)) & 0x0F0F0F0Fu);
    SetScales(s.head, 2 * (step % 4) + block, &weights);
    return weights;
  }
};

struct WeightsQ5_K : SuperBlocks {
  static constexpr ggml_type kType = GGML_TYPE_Q5_K;
  struct Step {
    uint4 head;
    uint2 fifth, nibbles;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* super = row + static_cast<int64_t>(step / 4) * 176;
    return {*reinterpret_cast<const uint4*>(super), *reinterpret_cast<const uint2*>(super + 16 + 8 * quad),
            *reinterpret_cast<const uint2*>(super + 48 + 32 * (step % 4) + 8 * quad)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int block, int step) {
    const int j = 2 * (step % 4) + block;
    BlockWeights weights{};
    weights.first =
        static_cast<int>(((s.nibbles.x >> (4 * block)) & 0x0F0F0F0Fu) | (((s.fifth.x >> j) & 0x01010101u) << 4));
    weights.second =
        static_cast<int>(((s.nibbles.y >> (4 * block)) & 0x0F0F0F0Fu) | (((s.fifth.y >> j) & 0x01010101u) << 4));
    SetScales(s.head, j, &weights);
    return weights;
  }
};

// 256 weights with an 8-bit scale for each 16; a step is 128 weights, which share bytes.
struct WeightsQ6_K {
  static constexpr ggml_type kType = GGML_TYPE_Q6_K;
  static constexpr int kStepBlocks = 4;
  static constexpr bool kHasMin = false;
  static constexpr bool kTwoScales = true;
  static __device__ __forceinline__ int First(int quad) { return 4 * quad; }
  static __device__ __forceinline__ int Second(int quad) { return 16 + 4 * quad; }
  struct Step {
    uint32_t low[4];   // of both halves of blocks 0 and 2, then of blocks 1 and 3
    uint32_t high[2];  // of the first and the second half of all blocks
    uint32_t scales[2];
    float scale;
  };
  static __device__ __forceinline__ Step Load(const char* row, int step, int quad) {
    const char* super = row + static_cast<int64_t>(step / 2) * 210;
    const char* low = super + 64 * (step % 2) + 4 * quad;
    const char* high = super + 128 + 32 * (step % 2) + 4 * quad;
    const char* scales = super + 192 + 8 * (step % 2);
    return {{LoadHalves(low), LoadHalves(low + 16), LoadHalves(low + 32), LoadHalves(low + 48)},
            {LoadHalves(high), LoadHalves(high + 16)},
            {LoadHalves(scales), LoadHalves(scales + 4)},
            HalfAt(super + 208)};
  }
  static __device__ __forceinline__ BlockWeights Block(const Step& s, int block, int /*step*/) {
    const int part = 2 * (block % 2), shift = 4 * (block / 2);
    const uint32_t first = ((s.low[part] >> shift) & 0x0F0F0F0Fu) | (((s.high[0] >> (2 * block)) & 0x03030303u) << 4);
    const uint32_t second =
        ((s.low[part + 1] >> shift) & 0x0F0F0F0Fu) | (((s.high[1] >> (2 * block)) & 0x03030303u) << 4);
    const uint32_t scales = s.scales[block / 2] >> (16 * (block % 2));
    return {Centred<32>(first),         Centred<32>(second), s.scale, 0, static_cast<int8_t>(scales >> 8),
            static_cast<int8_t>(scales)};
  }
};

}  // namespace outrider::kernels::cuda
