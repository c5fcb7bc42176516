// Candidates: the tokens that may still be chosen, as filters pass them on.
#pragma once

#include <cstddef>

#include "base/token.h"

namespace outrider {

struct Candidate {
  Token token;
  float logit;
  float probability;  // set by filters that need it; otherwise meaningless
};

// A view that a filter may shrink, reorder or point at storage of its own (which then lives as long as the filter).
struct Candidates {
  Candidate* data = nullptr;
  size_t size = 0;
  bool sorted = false;  // by logit, best first

  Candidate* begin() const { return data; }
  Candidate* end() const { return data + size; }
};

}  // namespace outrider
