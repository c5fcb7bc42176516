// Lookahead: an engine with hardware to spare begins with rows before they are asked for (speculation parallelism).
//
// Optional: only ReplicatedEngine implements it, and only the Speculator calls it. While a draft is being verified, the
// engine asks its source which tokens may follow the draft, and begins to compute their rows as if the draft were
// right. The Speculator is that source; it asks the drafters whose drafts grow meanwhile (DrafterTraits::drafts_ahead)
// through DrafterAsking::AskAhead. SchedulerStats::lookahead_steps counts the steps that gained by it.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

// Provides draft tokens while the target is still computing.
class LookaheadSource {
 public:
  virtual ~LookaheadSource() = default;

  // Replaces `tokens` by the tokens that may follow the rows of `seq` that are being decoded. Called from within
  // Engine::Decode, on the same thread, as often as the engine can use more tokens.
  virtual void ListTokensAhead(SeqId seq, std::vector<Token>* tokens) = 0;
};

class Lookahead {
 public:
  virtual ~Lookahead() = default;

  // Null (the default): nothing is begun ahead.
  virtual void SetLookaheadSource(LookaheadSource* source) = 0;

  // `text`: the committed tokens of `seq`. If the engine has begun with rows that continue `text`: the last token of
  // `text` and the tokens after it whose rows were begun, so that their logits will be ready sooner. Empty if there are
  // none. Valid until the next Decode.
  virtual std::span<const Token> BegunAhead(SeqId seq, std::span<const Token> text) const = 0;

  // Whether the rows of the last Decode had been begun before it was called.
  virtual bool LastDecodeWasBegunAhead() const = 0;
};

}  // namespace outrider
