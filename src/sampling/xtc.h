// XTC ("exclude top choices"): with some probability per position, drops all but the least likely of the candidates
// that reach a threshold. libllama's version cannot be used: it has a random generator of its own, whereas our draws
// depend only on the seed and the position.
#pragma once

#include <cstdint>

#include "base/token.h"
#include "sampling/candidate.h"

namespace outrider {

void ApplyXtc(float probability, float threshold, uint64_t seed, Pos position, Candidates& candidates);

}  // namespace outrider
