// The position-keyed draw: a token is argmax over candidates of (logit / T + G(seed, position, token)), G being Gumbel
// noise.
//
// By the Gumbel-max theorem this samples from softmax(logit / T). Because the noise of a token depends on nothing but
// seed, position and the token itself, the draw does not depend on the order or number of other candidates, on what was
// drafted, or on the batch; and a drafter that knows the seed can draw with the same noise.
#pragma once

#include <cstdint>

#include "base/token.h"
#include "sampling/candidate.h"

namespace outrider {

// Standard Gumbel noise.
double GumbelNoise(uint64_t seed, Pos position, Token token);

// What a coin is used for. Each is used at most once per position.
enum class Coin { kXtc = 0, kAcceptDraft = 1, kResidual = 2 };

// Uniform in (0, 1), independent of the Gumbel noise of every token and of the other coins.
double PositionCoin(uint64_t seed, Pos position, Coin coin);

// The drawn token; the best candidate if temperature is 0. Ties go to the lower token id. kNoToken if there is no
// candidate with a finite logit.
Token DrawToken(const Candidates& candidates, float temperature, uint64_t seed, Pos position);

}  // namespace outrider
