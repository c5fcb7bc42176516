// The vector operations of simd_avx512.h with eight lanes, by AVX2, FMA and F16C, for older processors. Include only
// from the translation unit that is compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace outrider::kernels {

#define OUTRIDER_INLINE static inline __attribute__((always_inline))

struct Avx2 {
  static constexpr int kLanes = 8;
  static constexpr int kPanelColumns = 4;
  static constexpr int kValueQueries = 2;
  static constexpr bool kOffsetDot = false;

  using Ints = __m256i;
  using Floats = __m256;
  using Bytes = __m256i;
  using Lanes = __m256;

  OUTRIDER_INLINE Bytes LoadBytes(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  OUTRIDER_INLINE Bytes LowNibbles(Bytes x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
  OUTRIDER_INLINE Bytes HighNibbles(Bytes x) { return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15)); }
  template <int kShift, int kWidth, int kUp>
  OUTRIDER_INLINE Bytes Field(Bytes x) {
    constexpr int kMove = kUp - kShift;
    const Bytes moved =
        kMove >= 0 ? _mm256_slli_epi16(x, kMove >= 0 ? kMove : 0) : _mm256_srli_epi16(x, kMove < 0 ? -kMove : 0);
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(((1 << kWidth) - 1) << kUp)));
  }
  OUTRIDER_INLINE Bytes Or(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
  OUTRIDER_INLINE Bytes Lookup(const uint8_t* table16, Bytes index) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table16))),
                               index);
  }

  OUTRIDER_INLINE Ints Zero() { return _mm256_setzero_si256(); }
  OUTRIDER_INLINE Ints Broadcast(int32_t x) { return _mm256_set1_epi32(x); }
  OUTRIDER_INLINE Ints LoadU8(const uint8_t* from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  OUTRIDER_INLINE Ints LoadI8(const int8_t* from) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  OUTRIDER_INLINE Ints LoadU16(const uint16_t* from) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  template <int kShift, int kWidth>
  OUTRIDER_INLINE Ints UpperBits(Ints x) {
    return _mm256_and_si256(_mm256_slli_epi32(x, 8 - kShift), _mm256_set1_epi32(((1 << kWidth) - 1) << 8));
  }
  template <int kStride>
  OUTRIDER_INLINE Bytes Gather(const uint32_t* table, Ints index) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index, 4 * kStride);
  }
  OUTRIDER_INLINE Bytes NegateAround64(Bytes x, const uint8_t* signs) {
    int32_t bits;
    __builtin_memcpy(&bits, signs, sizeof bits);
    const __m256i byte_of = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201U));
    const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), byte_of), bit_of);
    const __m256i where = _mm256_cmpeq_epi8(spread, bit_of);
    return _mm256_blendv_epi8(x, _mm256_sub_epi8(_mm256_set1_epi8(-128), x), where);
  }
  OUTRIDER_INLINE Ints PairsOf(Ints low, Ints high) { return _mm256_or_si256(low, _mm256_slli_epi32(high, 16)); }
  OUTRIDER_INLINE Ints MultiplyAdd(Ints a, Ints b, Ints c) { return _mm256_add_epi32(_mm256_mullo_epi32(a, b), c); }

  OUTRIDER_INLINE void Dot(Ints& sum, Bytes w, const int8_t* x) {
    const __m256i products = _mm256_maddubs_epi16(w, FourOf(x));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  // The offset is subtracted before the products, because these would not fit into 16 bits. So the sum needs no
  // correction.
  OUTRIDER_INLINE void DotOffset(Ints& sum, Bytes w, const int8_t* x) {
    const __m256i four = FourOf(x);
    const __m256i weights = _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
    const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(four, weights));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  OUTRIDER_INLINE void DotPairs(Ints& sum, Ints w, const int16_t* x) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x))));
  }

  OUTRIDER_INLINE Floats ZeroFloats() { return _mm256_setzero_ps(); }
  OUTRIDER_INLINE Floats Broadcast(float x) { return _mm256_set1_ps(x); }
  OUTRIDER_INLINE Floats Load(const float* from) { return _mm256_loadu_ps(from); }
  OUTRIDER_INLINE void Store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
  OUTRIDER_INLINE Floats LoadHalf(const uint16_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  OUTRIDER_INLINE Floats LoadBrain(const uint16_t* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(LoadU16(from), 16));
  }
  OUTRIDER_INLINE Floats LoadPowers(const uint8_t* from) {
    const Ints x = LoadU8(from);
    const Ints normal = _mm256_slli_epi32(_mm256_sub_epi32(x, _mm256_set1_epi32(1)), 23);
    const Ints tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), x);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(tiny, normal, _mm256_cmpgt_epi32(x, _mm256_set1_epi32(1))));
  }
  OUTRIDER_INLINE Floats ToFloats(Ints x) { return _mm256_cvtepi32_ps(x); }
  OUTRIDER_INLINE Ints Round(Floats x) { return _mm256_cvtps_epi32(x); }
  OUTRIDER_INLINE Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  OUTRIDER_INLINE Floats Subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  OUTRIDER_INLINE Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  OUTRIDER_INLINE Floats Divide(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  OUTRIDER_INLINE Floats Fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  OUTRIDER_INLINE Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  OUTRIDER_INLINE Floats Abs(Floats x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  OUTRIDER_INLINE Floats ScaleByPower(Floats x, Ints n) {
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)));
  }
  OUTRIDER_INLINE Lanes Less(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  OUTRIDER_INLINE Lanes Equal(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  OUTRIDER_INLINE Lanes FirstLanes(int n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), index));
  }
  OUTRIDER_INLINE Floats Choose(Lanes lanes, Floats where_set, Floats otherwise) {
    return _mm256_blendv_ps(otherwise, where_set, lanes);
  }
  OUTRIDER_INLINE unsigned Bits(Lanes lanes) { return static_cast<unsigned>(_mm256_movemask_ps(lanes)); }
  OUTRIDER_INLINE float LargestOf(Floats x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
  }
  OUTRIDER_INLINE float SumOf(Floats x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
  }
  OUTRIDER_INLINE int32_t SumOf(Ints x) {
    __m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_add_epi32(y, _mm_unpackhi_epi64(y, y));
    return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 1)));
  }
  OUTRIDER_INLINE void StoreI8(int8_t* to, Ints x) {
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
  }
  OUTRIDER_INLINE float FromHalf(uint16_t x) { return _cvtsh_ss(x); }
  OUTRIDER_INLINE float RoundToHalf(float x) { return _cvtsh_ss(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)); }

  OUTRIDER_INLINE void Transpose(Floats (&rows)[kLanes]) {
    Floats pairs[8], quads[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
      pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      quads[4 * i] = _mm256_shuffle_ps(pairs[4 * i], pairs[4 * i + 2], 0x44);
      quads[4 * i + 1] = _mm256_shuffle_ps(pairs[4 * i], pairs[4 * i + 2], 0xee);
      quads[4 * i + 2] = _mm256_shuffle_ps(pairs[4 * i + 1], pairs[4 * i + 3], 0x44);
      quads[4 * i + 3] = _mm256_shuffle_ps(pairs[4 * i + 1], pairs[4 * i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x20);
      rows[4 + i] = _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x31);
    }
  }

 protected:
  OUTRIDER_INLINE __m256i FourOf(const int8_t* x) { return _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x)); }
};

}  // namespace outrider::kernels
