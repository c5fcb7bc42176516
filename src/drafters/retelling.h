// Retelling: a growing history in one model's tokens, told again in another's. All that two vocabularies have in common
// is text, so the history is spelt out and tokenised again. What is appended can change how the last words are
// tokenised; a few tokens at the end are therefore told anew each time, and everything before them is settled. Control
// tokens ("<|im_end|>") stand for themselves: what comes before and after one is told apart from it.
//
// A retelling is as good as the guess it is made for: what cannot be spelt in the other vocabulary is not told.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/tokenizer.h"

namespace outrider {

class Retelling {
 public:
  Retelling(const Tokenizer& from, const Tokenizer& to) : from_(&from), to_(&to) {}

  // From now on `history` is told; what was told of its beginning stays.
  void Begin(std::span<const Token> history);

  // Tells at most `tokens` more of `history`, which has only grown since Begin.
  void Follow(std::span<const Token> history, size_t tokens);

  // Tokens of the history that were told.
  size_t followed() const { return source_.size(); }

  // The history as far as it was told, with `more` text behind it; empty if it cannot be spelt (a character that is
  // not complete yet). Valid until the next call.
  std::span<const Token> Tell(std::string_view more);

  // As it was told last.
  std::span<const Token> told() const { return told_; }

  // How many tokens at the beginning of what is told will stay as they are.
  size_t settled() const { return settled_; }

 private:
  // A place where tokens of both sides begin.
  struct Mark {
    size_t source, told;
  };

  void Read(Token token);
  void ReadControl(Token token);
  void Settle();

  const Tokenizer* from_;
  const Tokenizer* to_;
  std::vector<Token> source_;
  std::vector<Token> told_;  // `settled_` tokens, then those of the open text as it was last told
  size_t settled_ = 0;
  std::string open_text_;
  std::vector<Mark> marks_;  // ascending; the last is where the open text begins
};

// `text` as tokens that spell exactly this, whatever the vocabulary likes to put at the beginning of a text; empty if
// there are none.
std::vector<Token> TokenizeWithin(const Tokenizer& tokenizer, std::string_view text);

}  // namespace outrider
