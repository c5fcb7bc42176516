// XTC ("exclude top choices"): with some probability per position, drops all but the least likely of the candidates
// that reach a threshold. Written here because libllama's version keeps a random generator of its own, which a draw
// keyed by position must not.
#pragma once

#include <cstdint>

#include "base/token.h"
#include "sampling/candidate.h"

namespace outrider {

void ApplyXtc(float probability, float threshold, uint64_t seed, Pos position, Candidates& candidates);

}  // namespace outrider
