// The vector operations of simd_avx2.h with eight lanes, and VNNI instructions for its three dot products. VNNI has two
// encodings, AVX-VNNI (since Alder Lake) and the one of AVX-512 for short vectors. Each including translation unit
// defines the name of the struct, because the linker would take two structs with the same name for the same.
#pragma once

#include "kernels/simd_avx2.h"

#if defined(__AVXVNNI__)
#define OUTRIDER_DOT_BYTES _mm256_dpbusd_avx_epi32
#define OUTRIDER_DOT_PAIRS _mm256_dpwssd_avx_epi32
#else
#define OUTRIDER_DOT_BYTES _mm256_dpbusd_epi32
#define OUTRIDER_DOT_PAIRS _mm256_dpwssd_epi32
#endif

namespace outrider::kernels {

struct OUTRIDER_VNNI_256 : Avx2 {
  static constexpr bool kOffsetDot = true;

  OUTRIDER_INLINE void Dot(Ints& sum, Bytes w, const int8_t* x) { sum = OUTRIDER_DOT_BYTES(sum, w, FourOf(x)); }
  OUTRIDER_INLINE void DotOffset(Ints& sum, Bytes w, const int8_t* x) { Dot(sum, w, x); }
  OUTRIDER_INLINE void DotPairs(Ints& sum, Ints w, const int16_t* x) {
    sum = OUTRIDER_DOT_PAIRS(sum, w, _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(x)));
  }
};

}  // namespace outrider::kernels
