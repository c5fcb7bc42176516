// What drafters that look things up have in common: how they read a history, how they write a draft, and how sure they
// are. Proposing takes microseconds whatever the length of the history, and nothing of it is copied.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drafters/drafter.h"

namespace outrider {

// A proposal as one text: the history, what is drafted so far, and what is appended now.
class Continuation {
 public:
  explicit Continuation(Proposal& proposal);

  size_t length() const { return proposal_.history.size() + proposal_.draft.tokens.size(); }
  Token operator[](size_t position) const {
    const size_t n = proposal_.history.size();
    return position < n ? proposal_.history[position] : proposal_.draft.tokens[position - n].token;
  }

  // The last `count` tokens, of which there must be as many.
  uint64_t HashLast(size_t count) const;
  void CopyLast(std::span<Token> to) const;

  int room() const { return proposal_.max_tokens - proposal_.draft.size(); }

  // Appends a token unless one of the proposal's limits forbids it; then the draft has ended, and false is returned.
  bool Append(Token token, float confidence);

 private:
  Proposal& proposal_;
  double survival_ = 1;  // product of the draft's confidences
};

// How sure to be of a token that followed in `agreed` of the `seen` places where the last `matched` tokens stood. The
// share, shrunk towards what can be expected from a match of this length alone: `matched` tokens went well in a row, so
// by Laplace's rule of succession the next does with (matched + 1) / (matched + 2). Always within (0, 1).
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
  // history[position] is what follows the tokens before it. Called for each position of a sequence once, in order.
  virtual void Learn(SeqId seq, std::span<const Token> history, size_t position) = 0;
  virtual void Extend(SeqId seq, Continuation& text) = 0;
  virtual void Close(SeqId seq, std::span<const Token> history, bool complete) = 0;

 private:
  void Read(SeqId seq, std::span<const Token> history);

  std::vector<size_t> read_;  // of each sequence, tokens learned
};

}  // namespace outrider
