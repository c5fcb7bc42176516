// Mirostat (https://arxiv.org/abs/2007.14966), versions 1 and 2 as in llama.cpp: keeps the surprise of the drawn tokens
// near a target, by cutting off candidates that are too surprising and learning from each token where to cut.
//
// Its state is a function of the tokens that were accepted and of their logits, like that of the penalties: the same
// request gives the same text, however its rows were batched and whatever was drafted.
#pragma once

#include <vector>

#include "sampling/filter.h"

namespace outrider {

class Mirostat : public Filter {
 public:
  // `version`: 1 or 2; `tau`: the target, in bits; `eta`: how fast it learns.
  Mirostat(int version, float tau, float eta) : version_(version), tau_(tau), eta_(eta), limit_(2 * tau) {}

  void Apply(Candidates& candidates) override;

  // Learns if `token` is one of those that the last Apply left.
  void Accept(Token token) override;

 private:
  size_t CountKept(const Candidates& candidates) const;

  const int version_;
  const float tau_, eta_;
  float limit_;                  // bits of surprise up to which candidates stay (2), or that say how many do (1)
  std::vector<Candidate> left_;  // what the last Apply left, with their probabilities
};

}  // namespace outrider
