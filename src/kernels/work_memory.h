// ggml gives an operation one piece of work memory for all threads; parts of it begin on cache lines.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace outrider::kernels {

inline constexpr size_t kCacheLine = 64;

inline size_t InLines(size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

inline uint8_t* FirstLine(void* memory) {
  return reinterpret_cast<uint8_t*>(InLines(reinterpret_cast<uintptr_t>(memory)));
}

// Where a row of a tensor begins.
template <typename T>
T* RowOf(const ggml_tensor* tensor, int64_t i1, int64_t i2, int64_t i3) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor->data) + i1 * static_cast<int64_t>(tensor->nb[1]) +
                              i2 * static_cast<int64_t>(tensor->nb[2]) + i3 * static_cast<int64_t>(tensor->nb[3]));
}

}  // namespace outrider::kernels
