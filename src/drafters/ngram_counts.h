// NgramCounts: which tokens followed each n-gram of 1 to 4 tokens, and how often. What an n-gram cache file holds.
//
// Unlike NextTokens it forgets nothing by itself, so that a file can be read, added to and written back. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"
#include "drafters/hash_index.h"
#include "drafters/next_tokens.h"

namespace outrider {

inline constexpr int kMaxCachedNgram = 4;

using CachedNgram = std::array<Token, kMaxCachedNgram>;  // padded with kNoToken

inline CachedNgram MakeCachedNgram(std::span<const Token> tokens) {
  CachedNgram ngram = {kNoToken, kNoToken, kNoToken, kNoToken};
  for (size_t i = 0; i < tokens.size(); ++i) ngram[i] = tokens[i];
  return ngram;
}

class NgramCounts {
 public:
  // What followed one n-gram.
  class Followers {
   public:
    int64_t total() const { return total_; }

   private:
    friend class NgramCounts;
    static constexpr uint32_t kNone = UINT32_MAX;

    CachedNgram ngram_{};
    int64_t total_ = 0;
    uint32_t first_ = kNone;  // in nodes_
  };

  // `token` followed once more. Not counted if hundreds of tokens followed the n-gram: it predicts nothing.
  void Add(const CachedNgram& ngram, Token token);

  // What followed a new n-gram: at least one token, in descending order of count. False if the n-gram is there already.
  bool Insert(const CachedNgram& ngram, std::span<const CountedToken> tokens);

  // Null if the n-gram is not there.
  const Followers* Find(const CachedNgram& ngram) const;

  // Fills `tokens` with the most frequent followers, the most frequent first, and returns how many there are.
  size_t Top(const Followers& followers, std::span<CountedToken> tokens) const;

  // How often `token` followed, if it is one of the few dozen most frequent followers; else 0.
  int32_t Count(const Followers& followers, Token token) const;

  // Halves all counts and removes followers that were seen only once.
  void Age();

  size_t size() const { return index_.size(); }  // n-grams

  // Calls visit(ngram, tokens) for each n-gram, tokens in descending order of count.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    std::vector<CountedToken> tokens;
    for (const auto& slot : index_.slots()) {
      if (slot.hash == 0) continue;
      tokens.clear();
      for (uint32_t at = slot.value.first_; at != Followers::kNone; at = nodes_[at].next) {
        tokens.push_back(nodes_[at].counted);
      }
      visit(slot.value.ngram_, std::span<const CountedToken>(tokens));
    }
  }

  // For tests: counts are positive and descend, and add up to the totals.
  bool CheckInvariants() const;

 private:
  struct Node {
    CountedToken counted;
    uint32_t next = Followers::kNone;
  };

  uint32_t AddNode(const CountedToken& counted);

  HashIndex<Followers> index_;
  std::vector<Node> nodes_;  // linked lists, most frequent first; in one vector, as most n-grams have one follower
};

}  // namespace outrider
