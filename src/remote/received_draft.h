// ReceivedDraft: a draft server's draft for one sequence, as far as it has arrived.
//
// When a message arrives, the text may be longer than it was when the server sent it. Whether the draft is still valid
// follows from comparing it with the text. The server makes the same comparison, so the two need not exchange any
// state to agree.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "remote/draft.pb.h"
#include "spec/draft.h"

namespace outrider {

class ReceivedDraft {
 public:
  // `vocabulary`: size of the target's vocabulary. `candidates`: whether the server was asked for the candidates that
  // each token was drawn from.
  ReceivedDraft(Token vocabulary, bool candidates) : vocabulary_(vocabulary), wants_candidates_(candidates) {}

  // Adds the tokens of a message. `sent_length`: tokens of the text that were sent to the server so far. An error means
  // that the server broke the protocol, and the stream has to be ended.
  Status Receive(const draft::v1::ToClient& message, size_t sent_length);

  // The text is `text` now: drops drafted tokens that are part of it, or the whole draft if it differs. Returns the
  // length up to which the text agrees with the draft.
  size_t Advance(std::span<const Token> text);

  // Appends the tokens after the text of the last Advance to `draft`, until that has `max_tokens` tokens, or before the
  // first token with a confidence below `p_min`. Tokens that are in `draft` already must be the first ones of this
  // draft; otherwise nothing is appended.
  void AppendTo(int max_tokens, float p_min, Draft& draft) const;

  // Number of drafted tokens after that text.
  size_t ahead() const { return agrees_ && start_ == length_ ? tokens_.size() : 0; }

 private:
  struct Guess {
    DraftToken token;
    std::vector<TokenProbability> candidates;
  };

  Token vocabulary_;
  bool wants_candidates_;
  size_t base_ = 0;
  size_t start_ = 0;   // position in the text of the first of tokens_, or of the first token that was wrong
  size_t length_ = 0;  // of the text
  bool agrees_ = true;
  std::deque<Guess> tokens_;
};

}  // namespace outrider
