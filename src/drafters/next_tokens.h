// NextTokens: which tokens followed an n-gram, and how often. Keeps at most four of them, in a fixed amount of memory:
// an n-gram with more continuations of about the same frequency does not help to predict the next token.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/token.h"

namespace outrider {

struct CountedToken {
  Token token = kNoToken;
  int32_t count = 0;

  bool operator==(const CountedToken&) const = default;
};

class NextTokens {
 public:
  // `token` followed once more. A new one takes the place of the rarest.
  void Add(Token token) {
    ++total_;
    size_t at = 0;
    while (at < tokens_.size() - 1 && tokens_[at].count > 0 && tokens_[at].token != token) ++at;
    tokens_[at] = {token, tokens_[at].token == token ? tokens_[at].count + 1 : 1};
    for (; at > 0 && tokens_[at].count >= tokens_[at - 1].count; --at) std::swap(tokens_[at], tokens_[at - 1]);
  }

  const CountedToken& best() const { return tokens_[0]; }  // the most frequent; of equals the latest
  std::span<const CountedToken> tokens() const {           // the most frequent first
    size_t n = 0;
    while (n < tokens_.size() && tokens_[n].count > 0) ++n;
    return {tokens_.data(), n};
  }
  int total() const { return total_; }  // tokens that followed, forgotten ones too

 private:
  std::array<CountedToken, 4> tokens_{};
  int32_t total_ = 0;
};

}  // namespace outrider
