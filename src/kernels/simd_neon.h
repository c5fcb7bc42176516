// The vector operations of simd_avx512.h with four lanes, by NEON and its dot products (ARMv8.2). Include only from the
// translation unit that is compiled for it.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace outrider::kernels {

#define OUTRIDER_INLINE static inline __attribute__((always_inline))

struct NeonDotprod {
  static constexpr int kLanes = 4;
  static constexpr int kPanelColumns = 8;
  static constexpr int kValueQueries = 4;
  static constexpr bool kOffsetDot = false;

  using Ints = int32x4_t;
  using Floats = float32x4_t;
  using Bytes = uint8x16_t;
  using Lanes = uint32x4_t;

  OUTRIDER_INLINE Bytes LoadBytes(const void* from) { return vld1q_u8(static_cast<const uint8_t*>(from)); }
  OUTRIDER_INLINE Bytes LowNibbles(Bytes x) { return vandq_u8(x, vdupq_n_u8(15)); }
  OUTRIDER_INLINE Bytes HighNibbles(Bytes x) { return vshrq_n_u8(x, 4); }
  template <int kShift, int kWidth, int kUp>
  OUTRIDER_INLINE Bytes Field(Bytes x) {
    constexpr int kMove = kUp - kShift;
    Bytes moved = x;
    if constexpr (kMove > 0) moved = vshlq_n_u8(x, kMove);
    if constexpr (kMove < 0) moved = vshrq_n_u8(x, -kMove);
    return vandq_u8(moved, vdupq_n_u8(((1 << kWidth) - 1) << kUp));
  }
  OUTRIDER_INLINE Bytes Or(Bytes a, Bytes b) { return vorrq_u8(a, b); }
  OUTRIDER_INLINE Bytes Lookup(const uint8_t* table16, Bytes index) { return vqtbl1q_u8(vld1q_u8(table16), index); }

  OUTRIDER_INLINE Ints Zero() { return vdupq_n_s32(0); }
  OUTRIDER_INLINE Ints Broadcast(int32_t x) { return vdupq_n_s32(x); }
  OUTRIDER_INLINE Ints LoadU8(const uint8_t* from) {
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(FourBytes(from)))));
  }
  OUTRIDER_INLINE Ints LoadI8(const int8_t* from) {
    return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(FourBytes(reinterpret_cast<const uint8_t*>(from))))));
  }
  OUTRIDER_INLINE Ints Or(Ints a, Ints b) { return vorrq_s32(a, b); }
  template <int kShift, int kWidth>
  OUTRIDER_INLINE Ints UpperBits(Ints x) {
    return vandq_s32(vshlq_n_s32(x, 8 - kShift), vdupq_n_s32(((1 << kWidth) - 1) << 8));
  }
  template <int kStride>
  OUTRIDER_INLINE Bytes Gather(const uint32_t* table, Ints index) {
    const uint32x4_t found = {table[kStride * vgetq_lane_s32(index, 0)], table[kStride * vgetq_lane_s32(index, 1)],
                              table[kStride * vgetq_lane_s32(index, 2)], table[kStride * vgetq_lane_s32(index, 3)]};
    return vreinterpretq_u8_u32(found);
  }
  OUTRIDER_INLINE Bytes NegateAround64(Bytes x, const uint8_t* signs) {
    const uint8x16_t bit_of = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201U));
    const uint8x16_t where = vtstq_u8(vcombine_u8(vdup_n_u8(signs[0]), vdup_n_u8(signs[1])), bit_of);
    return vbslq_u8(where, vsubq_u8(vdupq_n_u8(128), x), x);
  }
  OUTRIDER_INLINE Ints PairsOf(Ints low, Ints high) { return vorrq_s32(low, vshlq_n_s32(high, 16)); }
  OUTRIDER_INLINE Ints MultiplyAdd(Ints a, Ints b, Ints c) { return vmlaq_s32(c, a, b); }

  // Weights are below 128, so signed products give the right result.
  OUTRIDER_INLINE void Dot(Ints& sum, Bytes w, const int8_t* x) {
    sum = vdotq_s32(sum, vreinterpretq_s8_u8(w), FourOf(x));
  }
  OUTRIDER_INLINE void DotOffset(Ints& sum, Bytes w, const int8_t* x) {
    sum = vdotq_s32(sum, vreinterpretq_s8_u8(veorq_u8(w, vdupq_n_u8(0x80))), FourOf(x));
  }
  OUTRIDER_INLINE void DotPairs(Ints& sum, Ints w, const int16_t* x) {
    sum = vmlaq_n_s32(sum, vshrq_n_s32(vshlq_n_s32(w, 16), 16), x[0]);
    sum = vmlaq_n_s32(sum, vshrq_n_s32(w, 16), x[1]);
  }

  OUTRIDER_INLINE Floats ZeroFloats() { return vdupq_n_f32(0.0f); }
  OUTRIDER_INLINE Floats Broadcast(float x) { return vdupq_n_f32(x); }
  OUTRIDER_INLINE Floats Load(const float* from) { return vld1q_f32(from); }
  OUTRIDER_INLINE void Store(float* to, Floats x) { vst1q_f32(to, x); }
  OUTRIDER_INLINE Floats LoadHalf(const uint16_t* from) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))); }
  OUTRIDER_INLINE Floats LoadBrain(const uint16_t* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(from), 16));
  }
  OUTRIDER_INLINE Floats LoadPowers(const uint8_t* from) {
    const Ints x = LoadU8(from);
    const Ints normal = vshlq_n_s32(vsubq_s32(x, vdupq_n_s32(1)), 23);
    const Ints tiny = vshlq_s32(vdupq_n_s32(0x00200000), x);
    return vreinterpretq_f32_s32(vbslq_s32(vcltq_s32(x, vdupq_n_s32(2)), tiny, normal));
  }
  OUTRIDER_INLINE Floats ToFloats(Ints x) { return vcvtq_f32_s32(x); }
  OUTRIDER_INLINE Ints Round(Floats x) { return vcvtnq_s32_f32(x); }
  OUTRIDER_INLINE Floats Add(Floats a, Floats b) { return vaddq_f32(a, b); }
  OUTRIDER_INLINE Floats Subtract(Floats a, Floats b) { return vsubq_f32(a, b); }
  OUTRIDER_INLINE Floats Multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
  OUTRIDER_INLINE Floats Divide(Floats a, Floats b) { return vdivq_f32(a, b); }
  OUTRIDER_INLINE Floats Fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  OUTRIDER_INLINE Floats Max(Floats a, Floats b) { return vmaxnmq_f32(a, b); }
  OUTRIDER_INLINE Floats Abs(Floats x) { return vabsq_f32(x); }
  OUTRIDER_INLINE Floats ScaleByPower(Floats x, Ints n) {
    return vmulq_f32(x, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23)));
  }
  OUTRIDER_INLINE Lanes Less(Floats a, Floats b) { return vcltq_f32(a, b); }
  OUTRIDER_INLINE Lanes Equal(Floats a, Floats b) { return vceqq_f32(a, b); }
  OUTRIDER_INLINE Lanes FirstLanes(int n) {
    const int32x4_t index = {0, 1, 2, 3};
    return vcltq_s32(index, vdupq_n_s32(n));
  }
  OUTRIDER_INLINE Floats Choose(Lanes lanes, Floats where_set, Floats otherwise) {
    return vbslq_f32(lanes, where_set, otherwise);
  }
  OUTRIDER_INLINE unsigned Bits(Lanes lanes) {
    const uint32x4_t weights = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(lanes, weights));
  }
  OUTRIDER_INLINE float LargestOf(Floats x) { return vmaxnmvq_f32(x); }
  OUTRIDER_INLINE float SumOf(Floats x) { return vaddvq_f32(x); }
  OUTRIDER_INLINE int32_t SumOf(Ints x) { return vaddvq_s32(x); }
  OUTRIDER_INLINE void StoreI8(int8_t* to, Ints x) {
    const int8x8_t bytes = vqmovn_s16(vcombine_s16(vqmovn_s32(x), vdup_n_s16(0)));
    vst1_lane_s32(reinterpret_cast<int32_t*>(to), vreinterpret_s32_s8(bytes), 0);
  }
  OUTRIDER_INLINE float FromHalf(uint16_t x) {
    __fp16 half;
    __builtin_memcpy(&half, &x, sizeof half);
    return half;
  }
  OUTRIDER_INLINE float RoundToHalf(float x) { return static_cast<__fp16>(x); }

  OUTRIDER_INLINE void Transpose(Floats (&rows)[kLanes]) {
    const Floats a = vzip1q_f32(rows[0], rows[2]), b = vzip2q_f32(rows[0], rows[2]);
    const Floats c = vzip1q_f32(rows[1], rows[3]), d = vzip2q_f32(rows[1], rows[3]);
    rows[0] = vzip1q_f32(a, c);
    rows[1] = vzip2q_f32(a, c);
    rows[2] = vzip1q_f32(b, d);
    rows[3] = vzip2q_f32(b, d);
  }

 private:
  OUTRIDER_INLINE uint8x8_t FourBytes(const uint8_t* from) {
    uint32_t bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return vcreate_u8(bytes);
  }
  OUTRIDER_INLINE int8x16_t FourOf(const int8_t* x) {
    return vreinterpretq_s8_s32(vdupq_n_s32(*reinterpret_cast<const int32_t*>(x)));
  }
};

}  // namespace outrider::kernels
