#include "sampling/gumbel.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/philox.h"

namespace outrider {
namespace {

enum class Stream : uint32_t { kToken = 0, kCoin = 1 };

// 53 random bits, as a function of the arguments.
uint64_t RandomBits(PhiloxKey key, Pos position, Token token, Stream stream) {
  const PhiloxCounter words = Philox4x32(
      {static_cast<uint32_t>(position), static_cast<uint32_t>(token), static_cast<uint32_t>(stream), 0}, key);
  return ((static_cast<uint64_t>(words[0]) << 32) | words[1]) >> 11;
}

double Uniform(uint64_t bits) {
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

// u is taken as the distance from 1, so that large noise keeps full precision.
double GumbelFromBits(uint64_t bits) {
  return -std::log(-std::log1p(-Uniform(bits)));
}

// An upper bound of GumbelFromBits(bits) that is cheap to compute, from a count of bits:
// -log(-log(1 - u)) <= -log(u) <= (leading zeros + 1) * log 2.
double GumbelUpperBound(uint64_t bits) {
  constexpr double kLog2 = 0.6931471805599454;  // rounded up
  return (std::countl_zero(bits << 11 | 1) + 1) * kLog2;
}

constexpr double kMaxNoise = 37.5;  // > GumbelFromBits(0) = 37.43

}  // namespace

double GumbelNoise(uint64_t seed, Pos position, Token token) {
  return GumbelFromBits(RandomBits(PhiloxKeyFromSeed(seed), position, token, Stream::kToken));
}

double PositionCoin(uint64_t seed, Pos position, Coin coin) {
  return Uniform(RandomBits(PhiloxKeyFromSeed(seed), position, static_cast<Token>(coin), Stream::kCoin));
}

Token DrawToken(const Candidates& candidates, float temperature, uint64_t seed, Pos position) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const PhiloxKey key = PhiloxKeyFromSeed(seed);
  const double scale = temperature > 0 ? 1.0 / temperature : 1.0;
  double best = kNothing;
  Token drawn = kNoToken;
  for (const Candidate& candidate : candidates) {
    double score = candidate.logit * scale;
    if (temperature > 0) {
      // Most tokens of a large vocabulary cannot win. Random bits, and then logarithms, are only computed for those
      // that can.
      if (!(score + kMaxNoise >= best)) continue;
      const uint64_t bits = RandomBits(key, position, candidate.token, Stream::kToken);
      if (score + GumbelUpperBound(bits) < best) continue;
      score += GumbelFromBits(bits);
    }
    if (score > best || (score == best && score != kNothing && candidate.token < drawn)) {
      best = score;
      drawn = candidate.token;
    }
  }
  return drawn;
}

}  // namespace outrider
