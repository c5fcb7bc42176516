// Lookahead: an engine with hardware to spare begins with rows before they are asked for (speculation parallelism).
//
// Optional. ReplicatedEngine is the only engine that does it, and the Speculator the only one that uses it; nobody else
// needs to know. While a draft is verified, the engine asks its source which tokens may follow the draft and begins
// with them, as if the draft were right.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

// Knows what the drafters have to say while the target is still computing.
class LookaheadSource {
 public:
  virtual ~LookaheadSource() = default;

  // Replaces `tokens` by what may follow the rows of `seq` that are being decoded. Called from within Engine::Decode,
  // on the thread that called it, as often as the engine can use more tokens.
  virtual void ListTokensAhead(SeqId seq, std::vector<Token>* tokens) = 0;
};

class Lookahead {
 public:
  virtual ~Lookahead() = default;

  // Null (the default): nothing is begun ahead.
  virtual void SetLookaheadSource(LookaheadSource* source) = 0;

  // If rows were begun that continue `text`, the committed tokens of `seq`: its last token and the tokens after it
  // whose rows will have logits sooner than others. Empty if there are none. Valid until the next Decode.
  virtual std::span<const Token> BegunAhead(SeqId seq, std::span<const Token> text) const = 0;

  // Whether the rows of the last Decode had been begun before it was called.
  virtual bool LastDecodeWasBegunAhead() const = 0;
};

}  // namespace outrider
