// The options of a server for speculation, and what one request may do within them.
#pragma once

#include <vector>

#include "spec/tuning.h"

namespace outrider {

struct SpeculatorOptions {
  int n_max = 31;       // max draft tokens per sequence and step
  int n_min = 0;        // shorter drafts are dropped
  float p_min = 0;      // a draft ends before the first token with a lower confidence than this
  bool join = true;     // a draft that is likely to be accepted completely may be continued by another drafter
  bool always = false;  // verify every draft, whatever it costs: for tests and for measuring a drafter
  double min_pace_beside_others = 0.9;  // share of its speed without drafts that a sequence keeps; 0 = no limit
  Tuning tuning;
};

// The request that runs in a sequence, as far as drafters are concerned.
struct SpeculationRequest {
  bool speculates = false;
  bool rejecting = false;  // random draws may be rejected: whether one is verified must not depend on what was drawn
  int n_max = 0, n_min = 0;
  float p_min = 0;
  std::vector<bool> allowed;  // by drafter
  int generated = 0;          // tokens generated so far
};

}  // namespace outrider
