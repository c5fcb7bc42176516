// Replay: runs a world with the Speculator, with a fixed setting, or as an oracle would.
//
// The Speculator is the one of the server; only the engine, the drafters and the clock are replaced. Measured times
// have noise, which the Speculator sees; the times that are reported do not, so that runs can be compared.
//
// Not modelled: prompts (a request begins with its first token) and work between steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "drafters/speculator.h"
#include "worlds/world.h"

namespace outrider {

struct ReplayedRequest {
  int tokens = 0;
  double seconds = 0;  // from its first step to its last

  double Rate() const { return tokens / seconds; }
};

struct ReplayResult {
  double seconds = 0;
  std::vector<ReplayedRequest> requests;
  std::vector<DrafterStats> drafters;  // their names refer to the world

  double Tokens() const;
  double Rate() const { return Tokens() / seconds; }
};

ReplayResult ReplaySpeculator(const World& world, uint64_t seed, const SpeculatorOptions& options = {});

// In each step `length` tokens of `drafter`, whatever comes of it. `only_when_settled`: not while a sequence decodes
// tokens again after a rollback.
struct FixedSetting {
  size_t drafter = 0;
  int length = 0;
  bool only_when_settled = false;
};
ReplayResult ReplayFixed(const World& world, const FixedSetting& setting);
inline ReplayResult ReplayPlain(const World& world) {
  return ReplayFixed(world, {});
}

// The best fixed setting in hindsight; no draft at all is one of them.
struct BestFixed {
  FixedSetting setting;
  ReplayResult result;
};
BestFixed FindBestFixed(const World& world, int max_length = 24);

// The shortest time in which all requests can be answered, one after the other, if it is known beforehand which tokens
// will be right and what each step costs. Switches of shapes are not counted. Null if the world has several slots or
// its machine decodes tokens again after a rollback: then the shortest time is not computed.
std::optional<double> OracleSeconds(const World& world);

}  // namespace outrider
