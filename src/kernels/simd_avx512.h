// The vector operations that the kernel templates use, with sixteen lanes, by AVX-512 and VNNI. simd_avx2.h has the
// same operations with eight lanes. Include only from the translation unit that is compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace outrider::kernels {

#define OUTRIDER_INLINE static inline __attribute__((always_inline))

struct Avx512Vnni {
  static constexpr int kLanes = 16;
  static constexpr int kPanelColumns = 16;  // their float accumulators fit into registers beside a decoded block
  static constexpr int kValueQueries = 4;   // rows of attention weights per pass over the values
  static constexpr bool kOffsetDot = true;  // DotOffset leaves its offset of 128 to the caller

  using Ints = __m512i;
  using Floats = __m512;
  using Bytes = __m512i;
  using Lanes = __mmask16;

  OUTRIDER_INLINE Bytes LoadBytes(const void* from) { return _mm512_loadu_si512(from); }
  OUTRIDER_INLINE Bytes LowNibbles(Bytes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
  OUTRIDER_INLINE Bytes HighNibbles(Bytes x) { return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15)); }
  // Bits [shift, shift + width) of each byte, moved up by `up`.
  template <int kShift, int kWidth, int kUp>
  OUTRIDER_INLINE Bytes Field(Bytes x) {
    constexpr int kMove = kUp - kShift;
    const Bytes moved =
        kMove >= 0 ? _mm512_slli_epi16(x, kMove >= 0 ? kMove : 0) : _mm512_srli_epi16(x, kMove < 0 ? -kMove : 0);
    return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kUp)));
  }
  OUTRIDER_INLINE Bytes Or(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  OUTRIDER_INLINE Bytes Lookup(const uint8_t* table16, Bytes index) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16))),
                               index);
  }

  OUTRIDER_INLINE Ints Zero() { return _mm512_setzero_si512(); }
  OUTRIDER_INLINE Ints Broadcast(int32_t x) { return _mm512_set1_epi32(x); }
  OUTRIDER_INLINE Ints LoadU8(const uint8_t* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  OUTRIDER_INLINE Ints LoadI8(const int8_t* from) {
    return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  OUTRIDER_INLINE Ints LoadU16(const uint16_t* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  // Bits [shift, shift + width) of each lane, as bits 8 and up.
  template <int kShift, int kWidth>
  OUTRIDER_INLINE Ints UpperBits(Ints x) {
    return _mm512_and_si512(_mm512_slli_epi32(x, 8 - kShift), _mm512_set1_epi32(((1 << kWidth) - 1) << 8));
  }
  // table[stride · index] of each lane.
  template <int kStride>
  OUTRIDER_INLINE Bytes Gather(const uint32_t* table, Ints index) {
    return _mm512_i32gather_epi32(index, table, 4 * kStride);
  }
  // 128 - x for the bytes whose bit at `signs` is set.
  OUTRIDER_INLINE Bytes NegateAround64(Bytes x, const uint8_t* signs) {
    __mmask64 mask;
    __builtin_memcpy(&mask, signs, sizeof mask);
    return _mm512_mask_sub_epi8(x, mask, _mm512_set1_epi8(-128), x);
  }
  OUTRIDER_INLINE Ints PairsOf(Ints low, Ints high) { return _mm512_or_si512(low, _mm512_slli_epi32(high, 16)); }
  OUTRIDER_INLINE Ints MultiplyAdd(Ints a, Ints b, Ints c) { return _mm512_add_epi32(_mm512_mullo_epi32(a, b), c); }

  // sum += the four bytes of each lane of `w`, at most 128 each, times the four signed bytes at `x`.
  OUTRIDER_INLINE void Dot(Ints& sum, Bytes w, const int8_t* x) {
#if defined(__GNUC__) && !defined(__clang__)
    // g++ 12 does not fold the broadcast into the instruction by itself.
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const int32_t*>(x)));
#else
    sum = _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x)));
#endif
  }
  // The same for weights stored with 128 added: here the sum is too large by 128 times the sum of `x`.
  OUTRIDER_INLINE void DotOffset(Ints& sum, Bytes w, const int8_t* x) { Dot(sum, w, x); }
  // sum += the two 16-bit halves of each lane of `w` times the two numbers at `x`.
  OUTRIDER_INLINE void DotPairs(Ints& sum, Ints w, const int16_t* x) {
    sum = _mm512_dpwssd_epi32(sum, w, _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(x)));
  }

  OUTRIDER_INLINE Floats ZeroFloats() { return _mm512_setzero_ps(); }
  OUTRIDER_INLINE Floats Broadcast(float x) { return _mm512_set1_ps(x); }
  OUTRIDER_INLINE Floats Load(const float* from) { return _mm512_loadu_ps(from); }
  OUTRIDER_INLINE void Store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  OUTRIDER_INLINE Floats LoadHalf(const uint16_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  OUTRIDER_INLINE Floats LoadBrain(const uint16_t* from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(LoadU16(from), 16));
  }
  // 2^(x - 128) for the byte x of each lane; for 0 and 1 it is not a normal number.
  OUTRIDER_INLINE Floats LoadPowers(const uint8_t* from) {
    const Ints x = LoadU8(from);
    const Ints normal = _mm512_slli_epi32(_mm512_sub_epi32(x, _mm512_set1_epi32(1)), 23);
    const Ints tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), x);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(x, _mm512_set1_epi32(2)), tiny));
  }
  OUTRIDER_INLINE Floats ToFloats(Ints x) { return _mm512_cvtepi32_ps(x); }
  OUTRIDER_INLINE Ints Round(Floats x) { return _mm512_cvtps_epi32(x); }
  OUTRIDER_INLINE Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  OUTRIDER_INLINE Floats Subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  OUTRIDER_INLINE Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  OUTRIDER_INLINE Floats Divide(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  OUTRIDER_INLINE Floats Fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  OUTRIDER_INLINE Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  OUTRIDER_INLINE Floats Abs(Floats x) { return _mm512_abs_ps(x); }
  // x · 2^n, n within the exponents of normal numbers.
  OUTRIDER_INLINE Floats ScaleByPower(Floats x, Ints n) {
    return _mm512_mul_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23)));
  }
  OUTRIDER_INLINE Lanes Less(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  OUTRIDER_INLINE Lanes Equal(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  OUTRIDER_INLINE Lanes FirstLanes(int n) {
    return static_cast<Lanes>(n >= 16 ? 0xFFFFU : (1U << (n < 0 ? 0 : n)) - 1U);
  }
  OUTRIDER_INLINE Floats Choose(Lanes lanes, Floats where_set, Floats otherwise) {
    return _mm512_mask_blend_ps(lanes, otherwise, where_set);
  }
  OUTRIDER_INLINE unsigned Bits(Lanes lanes) { return lanes; }
  OUTRIDER_INLINE float LargestOf(Floats x) { return _mm512_reduce_max_ps(x); }
  OUTRIDER_INLINE float SumOf(Floats x) { return _mm512_reduce_add_ps(x); }
  // (_mm512_reduce_add_epi32 uses signed additions, which must not overflow, but do so for values made from NaNs.)
  OUTRIDER_INLINE int32_t SumOf(Ints x) {
    const __m256i y = _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    __m128i z = _mm_add_epi32(_mm256_castsi256_si128(y), _mm256_extracti128_si256(y, 1));
    z = _mm_add_epi32(z, _mm_unpackhi_epi64(z, z));
    return _mm_cvtsi128_si32(_mm_add_epi32(z, _mm_shuffle_epi32(z, 1)));
  }
  // The lanes as signed bytes, which they must fit.
  OUTRIDER_INLINE void StoreI8(int8_t* to, Ints x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtsepi32_epi8(x));
  }
  OUTRIDER_INLINE float FromHalf(uint16_t x) { return _cvtsh_ss(x); }
  OUTRIDER_INLINE float RoundToHalf(float x) { return _cvtsh_ss(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)); }

  // rows[i] holds lanes of row i; afterwards rows[j] holds what was lane j of every row.
  OUTRIDER_INLINE void Transpose(Floats (&rows)[kLanes]) {
    Floats pairs[16], quads[16], halves[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
      pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512d a = _mm512_castps_pd(pairs[4 * i]), b = _mm512_castps_pd(pairs[4 * i + 1]);
      const __m512d c = _mm512_castps_pd(pairs[4 * i + 2]), d = _mm512_castps_pd(pairs[4 * i + 3]);
      quads[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
      quads[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
      quads[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
      quads[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      halves[i] = _mm512_shuffle_f32x4(quads[i], quads[4 + i], 0x88);
      halves[4 + i] = _mm512_shuffle_f32x4(quads[i], quads[4 + i], 0xdd);
      halves[8 + i] = _mm512_shuffle_f32x4(quads[8 + i], quads[12 + i], 0x88);
      halves[12 + i] = _mm512_shuffle_f32x4(quads[8 + i], quads[12 + i], 0xdd);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      rows[i] = _mm512_shuffle_f32x4(halves[i], halves[8 + i], 0x88);
      rows[8 + i] = _mm512_shuffle_f32x4(halves[i], halves[8 + i], 0xdd);
    }
  }
};

}  // namespace outrider::kernels
