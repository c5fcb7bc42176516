// Drafter: guesses how a sequence continues.
//
// A guess is never trusted: the target verifies every token, so a drafter can be wrong, late, silent or broken without
// any effect on the text. What a drafter owes its caller: it never throws, never aborts on any history, never proposes
// more than it is asked for, and keeps sequences apart.
//
// A request's life: Begin, then Propose and Commit in turn, then End. `history` is always the whole committed sequence,
// prompt included, and belongs to the caller. A history may be shorter than the last one only after Begin. One thread
// calls. A drafter that keeps what it learned in a file writes it when it is destroyed.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/token.h"
#include "drafters/history_reader.h"
#include "engine/engine.h"
#include "sampling/sampling_options.h"
#include "spec/draft.h"

namespace outrider {

// What a drafter may know of a request besides its tokens.
struct DraftContext {
  SamplingOptions sampling;    // so that a drafter with probabilities can draw with the target's own noise
  std::string owner;           // whose request it is (an API key's name, and the adapters of the text); what is
                               // remembered stays with its owner
  bool distributions = false;  // fill Draft::distributions, and draw with noise that is not the target's
};

// A question to a drafter and its answer.
struct Proposal {
  SeqId seq;
  std::span<const Token> history;
  int max_tokens = 0;       // length the draft may reach
  float p_min = 0;          // stop before the first token with less confidence
  double min_survival = 0;  // make no more tokens once the product of their confidences is below this
  Draft draft;              // may already hold tokens of another drafter: continue after them
  double patience = 0;      // seconds that the caller is willing to wait for an answer that is on its way
  double due = 0;           // answer: seconds until a draft arrives that is not ready yet; 0 = none is expected
};

// Rows of the target that became final in a step: they stay in its memory. Rows of tokens that were already in memory
// (a prefix of the prompt that an earlier request shared) are not among them. A row comes a second time, with the
// same values, if the engine had to fall back behind it (Engine::TruncateTo) and decoded it again.
struct FinalRows {
  Pos first = 0;  // position of the first of them
  int count = 0;
  Engine* engine = nullptr;
  int batch_row = 0;  // index of the first of them in the engine's last batch

  // Hidden states of row `i` (0 … count - 1); only for drafters that read them. Valid during the call.
  std::span<const float> Hidden(int i) const { return engine->Hidden(batch_row + i); }
};

// What became final for one sequence in a step.
struct CommittedStep {
  std::span<const Token> history;  // the whole sequence
  int added = 0;                   // tokens at its end that the target generated in this step; 0 while a prompt is read
  FinalRows rows = {};
};

// Properties of a drafter, which never change.
struct DrafterTraits {
  std::string name;           // as in --spec, /props and the metrics
  bool computes = false;      // takes so long that it is only asked when that pays; others answer within microseconds
  bool draws = false;         // its tokens are random draws if it is asked for distributions
  bool drafts_ahead = false;  // its drafts grow while the target verifies their beginning
  bool reads_hidden = false;  // Commit gives it the hidden states of the target's rows, those of prompts too
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  const DrafterTraits& traits() const { return traits_; }

  // A request begins in `seq`; the request that ran there before is over.
  virtual void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) = 0;

  // Appends to the draft of each proposal, or leaves it unchanged if the drafter has no guess. There are several
  // proposals in one call because a drafter with a model answers them in one batch.
  virtual void Propose(std::span<Proposal*> proposals) = 0;

  // Called after every step that generated tokens; for drafters that read hidden states, after every step.
  virtual void Commit(SeqId seq, const CommittedStep& step) = 0;

  // The request is over; `history` is all of it. `complete`: the answer was not cut off by an error, a cancellation or
  // a time limit, so it is worth remembering.
  virtual void End(SeqId seq, std::span<const Token> history, bool complete) = 0;

  // Null if it can propose at any time.
  virtual HistoryReader* reader() { return nullptr; }

 protected:
  explicit Drafter(DrafterTraits traits) : traits_(std::move(traits)) {}

 private:
  const DrafterTraits traits_;
};

}  // namespace outrider
