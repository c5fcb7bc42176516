// Retokenizer: translates a growing history from one model's tokens into another model's tokens.
//
// Two vocabularies have only the text in common, so the history is turned into text and tokenised again. Text that is
// appended later can change how the last words are tokenised. Therefore the last few output tokens stay open and are
// made again each time; all output tokens before them are settled and never change. A control token ("<|im_end|>") is
// translated by itself, apart from the text before and after it.
//
// The output only serves to make drafts, so it may be incomplete: text that the other vocabulary cannot spell is left
// out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/token.h"
#include "engine/tokenizer.h"

namespace outrider {

class Retokenizer {
 public:
  Retokenizer(const Tokenizer& from, const Tokenizer& to) : from_(&from), to_(&to) {}

  // Begins with a new `history`. Output for the tokens that it shares with the last history is kept.
  void Begin(std::span<const Token> history);

  // Translates at most `tokens` more tokens of `history`, which may only have grown since Begin.
  void Advance(std::span<const Token> history, size_t tokens);

  // Tokens of the history that were translated so far.
  size_t consumed() const { return source_.size(); }

  // The translated part of the history, followed by the text `more`, in the other model's tokens. Empty if the open
  // text cannot be spelt in them (for example because its last character is not complete yet). Valid until the next
  // call.
  std::span<const Token> Retokenize(std::string_view more);

  // The tokens that the last call of Advance or Retokenize made.
  std::span<const Token> output() const { return output_; }

  // How many tokens at the beginning of the output will not change any more.
  size_t settled() const { return settled_; }

 private:
  // A place in the text where a source token and an output token begin.
  struct Mark {
    size_t source, output;  // indices of these tokens
  };

  void Append(Token token);
  void AppendControl(Token token);
  void Settle();

  const Tokenizer* from_;
  const Tokenizer* to_;
  std::vector<Token> source_;
  std::vector<Token> output_;  // `settled_` tokens, then those of the open text as it was tokenised last
  size_t settled_ = 0;
  std::string open_text_;    // text of the source tokens after the last mark
  std::vector<Mark> marks_;  // ascending; the last is where the open text begins
};

// Tokens that spell exactly `text`, without what the vocabulary puts at the beginning of every text (such as a space).
// Empty if there are none.
std::vector<Token> TokenizeWithin(const Tokenizer& tokenizer, std::string_view text);

}  // namespace outrider
