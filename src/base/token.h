// The types that all rooms use: tokens, positions, sequences.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

using Token = int32_t;  // index into a vocabulary
using Pos = int32_t;    // index of a token in its sequence, from 0
using SeqId = int32_t;  // which of the engine's sequences, 0 .. n_sequences - 1

inline constexpr Token kNoToken = -1;

// How many tokens at the beginning are the same.
inline size_t CommonPrefix(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace outrider
