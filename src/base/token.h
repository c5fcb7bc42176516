// The nouns every room shares: tokens, positions, sequences.
#pragma once

#include <cstdint>

namespace outrider {

using Token = int32_t;  // index into a vocabulary
using Pos = int32_t;    // index of a token in its sequence, from 0
using SeqId = int32_t;  // which of the engine's sequences, 0 .. n_sequences - 1

inline constexpr Token kNoToken = -1;

}  // namespace outrider
