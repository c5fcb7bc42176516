// DraftSampler: from the logits of a network that drafts to the next token of a draft, for one sequence.
//
// It draws with the target's own noise (same seed, same positions), so that at any temperature it draws the target's
// token as often as the two distributions allow. Its confidence in a token is the probability with which it drew the
// token. If the request asks for distributions, it draws with other noise and says what it drew from.
#pragma once

#include <memory>
#include <span>

#include "base/token.h"
#include "drafters/drafter.h"
#include "engine/tokenizer.h"
#include "sampling/filter.h"
#include "sampling/sampler.h"

namespace outrider {

class DraftSampler {
 public:
  // Tokens from `vocabulary` on are not drafted.
  void Begin(const DraftContext& context, FilterFactory& filters, Token vocabulary);

  // Whether a request that can be drafted for has begun.
  bool ready() const { return sampler_ != nullptr; }

  // Appends the token that `logits` give to the draft. `survival`: the product of the confidences so far. False if the
  // draft ends here.
  bool Append(std::span<const float> logits, const Tokenizer& tokenizer, Proposal& proposal, double* survival);

 private:
  std::unique_ptr<Sampler> sampler_;
  Token vocabulary_ = 0;
  bool distributions_ = false;
};

}  // namespace outrider
