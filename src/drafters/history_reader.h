// HistoryReader: for drafters that must read a history before they can propose (a draft model that has not seen the
// prompt).
#pragma once

#include <span>

#include "base/token.h"

namespace outrider {

class HistoryReader {
 public:
  // So many tokens a drafter may read while it proposes; Lag counts only more than these.
  static constexpr int kReadAlong = 16;

  virtual ~HistoryReader() = default;

  // Tokens of the history that the drafter still has to read before it can propose for `seq`.
  virtual int Lag(SeqId seq, std::span<const Token> history) const = 0;

  // Reads up to `tokens` of them.
  virtual void Read(SeqId seq, std::span<const Token> history, int tokens) = 0;
};

}  // namespace outrider
