// ReasoningBudget: lets the model think for so many tokens, then makes it stop (llama.cpp's --reasoning-budget).
//
// The thinking ends as it would by itself, with the tokens of `closing`, after the character that is being written. The
// state is a function of the tokens that were accepted, so the text does not depend on what was drafted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sampling/filter.h"

namespace outrider {

class ReasoningBudget : public Filter {
 public:
  using PieceOf = std::function<std::string(Token)>;

  ReasoningBudget(const ReasoningOptions& options, PieceOf piece_of);

  // Leaves only the next token of the closing, if it is due and among the candidates: a grammar may forbid it.
  void Apply(Candidates& candidates) override;
  void Accept(Token token) override;

 private:
  enum class State { kOutside, kThinking, kClosing };

  void Begin();
  bool EndsWith(const std::vector<Token>& sequence) const;

  const ReasoningOptions options_;
  const PieceOf piece_of_;
  size_t longest_ = 0;  // of the sequences that are looked for
  State state_ = State::kOutside;
  int left_ = 0;               // tokens that it may still think
  size_t closed_ = 0;          // tokens of the closing that were accepted
  std::vector<Token> recent_;  // since the state began, at most `longest_`
  std::string character_;      // the beginning of one that is not complete
};

}  // namespace outrider
