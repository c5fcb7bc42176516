// The peak speed of an instruction set's dot products, to compare the speed of kernels with.
#pragma once

#include <cstdint>

namespace outrider::kernels {

template <typename S>
struct Peak {
  // Computes dot products of bytes that are all in registers or the L1 cache, in enough independent chains to hide
  // their latency. `values` are at least 64 bytes. Returns the number of multiplications; `sink` prevents the compiler
  // from removing them.
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
      asm volatile("" ::: "memory");  // the compiler must assume other columns in each round
    }
    int32_t sum = 0;
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sum += S::SumOf(sums[i]);
    *sink = sum;
    return rounds * kChains * S::kLanes * 4;
  }
};

}  // namespace outrider::kernels
