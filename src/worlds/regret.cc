#include "worlds/regret.h"

#include <fmt/format.h>

#include <algorithm>

namespace outrider {

Regret MeasureRegret(const World& world, const SpeculatorOptions& options, int seeds) {
  Regret regret;
  regret.world = world.name;
  regret.slots = world.slots;
  const ReplayResult plain = ReplayPlain(world);
  const BestFixed best = FindBestFixed(world);
  regret.best_fixed = best.setting.length == 0
                          ? "none"
                          : fmt::format("{} {}", world.drafters[best.setting.drafter].name, best.setting.length);
  for (const WorldDrafter& drafter : world.drafters) regret.drafters.push_back(drafter.name);
  regret.drafted.resize(world.drafters.size());
  regret.accepted.resize(world.drafters.size());
  double seconds = 0;
  std::vector<double> requests;
  for (int seed = 1; seed <= seeds; ++seed) {
    const ReplayResult ours = ReplaySpeculator(world, static_cast<uint64_t>(seed), options);
    seconds += ours.seconds / seeds;
    for (size_t i = 0; i < ours.requests.size(); ++i) {
      if (ours.requests[i].tokens < kJudgedTokens) continue;
      requests.push_back(ours.requests[i].Rate() / plain.requests[i].Rate());
    }
    for (size_t i = 0; i < ours.drafters.size(); ++i) {
      regret.drafted[i] += static_cast<double>(ours.drafters[i].verified) / ours.Tokens() / seeds;
      regret.accepted[i] += static_cast<double>(ours.drafters[i].accepted) / ours.Tokens() / seeds;
    }
  }
  regret.of_plain = plain.seconds / seconds;
  regret.of_best_fixed = best.result.seconds / seconds;
  if (const auto oracle = OracleSeconds(world)) regret.of_oracle = *oracle / seconds;
  std::sort(requests.begin(), requests.end());
  if (!requests.empty()) {
    regret.slowest_request = requests.front();
    regret.p10_request = requests[requests.size() / 10];
  }
  return regret;
}

}  // namespace outrider
