// Belief: a number that is known with some uncertainty.
#pragma once

namespace outrider {

struct Belief {
  double mean = 0;
  double variance = 0;
};

}  // namespace outrider
