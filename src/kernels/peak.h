// The most that an instruction set's dot products can do, to hold kernels' speed against.
#pragma once

#include <cstdint>

namespace outrider::kernels {

template <typename S>
struct Peak {
  // Dot products of bytes that are all at hand, in as many chains as hide their latency. `values` are at least 64
  // bytes. Returns how many multiplications that were; `sink` keeps them from being left out.
  static int64_t SpinDots(int64_t rounds, const uint8_t* values, int32_t* sink) {
    constexpr int kChains = 10;
    const auto* columns = reinterpret_cast<const int8_t*>(values);
    const typename S::Bytes weights = S::LoadBytes(values);
    typename S::Ints sums[kChains];
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = S::Zero();
    for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
      for (int i = 0; i < kChains; ++i) S::Dot(sums[i], weights, columns + 4 * i);
      asm volatile("" ::: "memory");  // the columns may be others now, so nothing is computed once for all rounds
    }
    int32_t sum = 0;
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum += S::SumOf(sums[i]);
    *sink = sum;
    return rounds * kChains * S::kLanes * 4;
  }
};

}  // namespace outrider::kernels
