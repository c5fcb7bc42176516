// Drafter: guesses how a sequence goes on.
//
// A guess is never trusted: the target verifies every token, so a drafter can be wrong, late, silent or broken without
// any effect on the text. What a drafter owes its caller: it never throws, never aborts on any history, never proposes
// more than it is asked for, and keeps sequences apart.
//
// `history` is always the whole committed sequence, prompt included, and belongs to the caller. A history may be
// shorter than the last one only after Begin. One thread calls.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/token.h"
#include "sampling/sampling_options.h"
#include "spec/draft.h"

namespace outrider {

// What a drafter may know of a request besides its tokens.
struct DraftContext {
  SamplingOptions sampling;    // so that a drafter with probabilities can draw with the target's own noise
  std::string owner;           // whose request it is (an API key's name); what is remembered stays with its owner
  bool distributions = false;  // fill Draft::distributions, and draw with noise that is not the target's
};

// A question to a drafter and its answer.
struct Proposal {
  SeqId seq;
  std::span<const Token> history;
  int max_tokens = 0;         // length the draft may reach
  float p_min = 0;            // stop before the first token with less confidence
  double least_survival = 0;  // make no more tokens once the product of confidences is below
  Draft draft;                // may come with tokens of another drafter: continue after them
  double patience = 0;        // seconds that waiting for an answer is worth
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual std::string_view name() const = 0;

  // A request begins in `seq`; whatever ran there before is over.
  virtual void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) = 0;

  // The last `added` tokens of `history` are new and final.
  virtual void Commit(SeqId seq, std::span<const Token> history, int added) = 0;

  // Appends to the draft of each proposal; leaves it as it is where there is nothing to say. Several at once, because a
  // drafter with a model answers them in one batch.
  virtual void Propose(std::span<Proposal*> proposals) = 0;

  // The request is over; `history` is all of it. `complete`: the answer ran its course (worth remembering).
  virtual void End(SeqId seq, std::span<const Token> history, bool complete) = 0;

  // A drafter that looks things up proposes within microseconds and is asked at every step. Others compute, and are
  // asked when that pays.
  virtual bool computes() const { return false; }

  // Whether its tokens are drawn at random if it is asked for distributions.
  virtual bool draws() const { return computes(); }

  // Tokens of the history that `seq` has still to read before it can propose (a draft model that has not seen the
  // prompt), and reading up to `tokens` of them.
  virtual int Lag(SeqId, std::span<const Token> /*history*/) const { return 0; }
  virtual void CatchUp(SeqId, std::span<const Token> /*history*/, int /*tokens*/) {}

  // A drafter whose answers come from elsewhere: seconds until one is there for `seq`, as far as can be told; 0 if
  // there is one, or none to expect. Until then it has nothing to propose, unless its proposal has the patience.
  virtual double Due(SeqId, std::span<const Token> /*history*/) const { return 0; }

  // Whether its drafts grow while the target verifies their beginning.
  virtual bool goes_on() const { return false; }

  // The server stops: a drafter that keeps what it learned in a file writes it now.
  virtual void Save() {}
};

}  // namespace outrider
