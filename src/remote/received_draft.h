// ArrivingLine: a draft server's line for one sequence, as far as it has arrived.
//
// Messages come when they come, and are about a text that may have moved on since. Whether a line is still good is
// found out by comparing it with the text, as the server does, so there is nothing to keep in step.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "remote/draft.pb.h"
#include "spec/draft.h"

namespace outrider {

class ArrivingLine {
 public:
  // `vocabulary`: how many tokens the target knows. `candidates`: what tokens were drawn from was asked for.
  ArrivingLine(Token vocabulary, bool candidates) : vocabulary_(vocabulary), wants_candidates_(candidates) {}

  // A proposal to a server that was told `told` tokens of the text. An error is the server's fault, and the end of the
  // stream.
  Status Take(const draft::v1::ToClient& message, size_t told);

  // The text is `text` now. Returns how far the line has foreseen it: up to this length it is as the line says.
  size_t Settle(std::span<const Token> text);

  // Appends what the line says after the text it was last settled with, and after what is in the draft already, until
  // `draft` has `max_tokens`, or before the first token with a confidence below `p_min`.
  void Continue(int max_tokens, float p_min, Draft& draft) const;

  // Tokens it has after that text.
  size_t ahead() const { return agrees_ && start_ == length_ ? tokens_.size() : 0; }

 private:
  struct Guess {
    DraftToken token;
    std::vector<TokenProbability> candidates;
  };

  Token vocabulary_;
  bool wants_candidates_;
  size_t base_ = 0;
  size_t start_ = 0;   // where in the text tokens_ begin, or the line was wrong
  size_t length_ = 0;  // of the text
  bool agrees_ = true;
  std::deque<Guess> tokens_;
};

}  // namespace outrider
