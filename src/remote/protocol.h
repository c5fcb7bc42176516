// What both ends of the draft protocol (draft.proto) must agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

inline constexpr uint32_t kProtocol = 1;

inline constexpr size_t kPrefixTokens = 256;      // between two hashes of a context
inline constexpr size_t kMaxPrefixes = 4096;      // hashes in one Open
inline constexpr size_t kMaxSliceTokens = 4096;   // of the context in one message
inline constexpr size_t kMaxCommitTokens = 4096;  // in one message
inline constexpr int kMaxDraftTokens = 256;       // after the text
inline constexpr int kMaxCandidates = 256;        // of one token
inline constexpr int kMaxMessageBytes = 1 << 17;
inline constexpr size_t kMaxOwnerBytes = 256;

// Hashes of the first 256, 512, … of `tokens`.
std::vector<uint64_t> PrefixHashes(std::span<const Token> tokens);

}  // namespace outrider
