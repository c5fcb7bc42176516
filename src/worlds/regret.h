// Regret: how the Speculator does in a world, compared with plain decoding, with the best fixed setting in hindsight,
// and with an oracle. Ratios of speeds: 1 = as fast, more is faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drafters/speculator_options.h"
#include "worlds/replay.h"
#include "worlds/world.h"

namespace outrider {

inline constexpr int kJudgedTokens = 64;  // single requests with fewer tokens are not judged

struct Regret {
  std::string world;
  int slots = 1;
  double of_plain = 1;       // over the whole run, mean of the seeds
  double of_best_fixed = 1;  // likewise
  std::string best_fixed;    // "model 3"
  std::optional<double> of_oracle;
  double slowest_request = 1;             // of plain: the slowest of all requests and seeds
  double p10_request = 1;                 // of plain: the tenth percentile over all requests and seeds
  std::vector<double> drafted, accepted;  // tokens per answer token, by drafter
  std::vector<std::string> drafters;      // their names
};

Regret MeasureRegret(const World& world, const SpeculatorOptions& options = {}, int seeds = 3);

}  // namespace outrider
