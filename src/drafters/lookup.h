// What all drafters that look things up have in common: how they read a history, how they write a draft, and how they
// compute their confidence. Proposing takes microseconds, however long the history is, and copies nothing of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drafters/drafter.h"

namespace outrider {

// A proposal seen as one text: the history, then the draft so far, to which tokens can be appended.
class Continuation {
 public:
  explicit Continuation(Proposal& proposal);

  size_t length() const { return proposal_.history.size() + proposal_.draft.tokens.size(); }
  Token operator[](size_t position) const {
    const size_t n = proposal_.history.size();
    return position < n ? proposal_.history[position] : proposal_.draft.tokens[position - n].token;
  }

  // Hashes or copies the last tokens. There must be as many.
  uint64_t HashLast(size_t count) const;
  void CopyLast(std::span<Token> to) const;

  int room() const { return proposal_.max_tokens - proposal_.draft.size(); }

  // Appends a token. Returns false, and appends nothing, if one of the proposal's limits forbids it: the draft ends
  // there.
  bool Append(Token token, float confidence);

 private:
  Proposal& proposal_;
  double survival_ = 1;  // product of the draft's confidences
};

// The confidence in a token that followed in `agreed` of the `seen` places where the last `matched` tokens occurred. It
// is the share agreed / seen, shrunk towards the chance that a match of this length gives by itself: `matched` tokens
// in a row were the same, so by Laplace's rule of succession the next one is the same with chance (matched + 1) /
// (matched + 2). Always within (0, 1).
float MatchConfidence(int64_t agreed, int64_t seen, int matched);

// A drafter that learns a sequence token by token and continues it by looking up its end.
class LookupDrafter : public Drafter {
 public:
  LookupDrafter(std::string name, int n_sequences)
      : Drafter({.name = std::move(name)}), read_(static_cast<size_t>(n_sequences)) {}

  void Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) final;
  void Commit(SeqId seq, const CommittedStep& step) final;
  void Propose(std::span<Proposal*> proposals) final;
  void End(SeqId seq, std::span<const Token> history, bool complete) final;

 protected:
  // Forgets what was in `seq`; a prompt of `n_prompt` tokens is about to be learned.
  virtual void Open(SeqId seq, const DraftContext& context, size_t n_prompt) = 0;
  // Learns that history[position] follows the tokens before it. Called once for each position of a sequence, in order.
  virtual void Learn(SeqId seq, std::span<const Token> history, size_t position) = 0;
  virtual void Extend(SeqId seq, Continuation& text) = 0;
  virtual void Close(SeqId seq, std::span<const Token> history, bool complete) = 0;

 private:
  void Read(SeqId seq, std::span<const Token> history);

  std::vector<size_t> read_;  // by sequence: how many of its tokens were learned
};

}  // namespace outrider
