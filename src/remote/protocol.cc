#include "remote/protocol.h"

#include <algorithm>

#include "base/hash.h"

namespace outrider {

std::vector<uint64_t> PrefixHashes(std::span<const Token> tokens) {
  std::vector<uint64_t> hashes;
  Fnv1a hash;
  const size_t count = std::min(tokens.size() / kPrefixTokens, kMaxPrefixes);
  for (size_t i = 0; i < count; ++i) {
    for (const Token token : tokens.subspan(i * kPrefixTokens, kPrefixTokens)) hash.AddValue(token);
    hashes.push_back(hash.hash());
  }
  return hashes;
}

}  // namespace outrider
