// Eight lanes with dot products of bytes: AVX2's words, and the three that VNNI has an instruction for. VNNI comes in
// two encodings, AVX-VNNI (Alder Lake on) and AVX-512's for short vectors, so the including translation unit says what
// its struct is called: two of one name would be one to the linker.
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
