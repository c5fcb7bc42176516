// How much each number of the Tuning matters: the simulated worlds decoded with half and with twice of it, relative to
// its value; of a share near 1 half and twice of its distance to 1. docs/TUNING.md has the table.
//
//   build/release/bin/policy_sensitivity [SEEDS [NAME]]     only numbers with NAME in their names
//
// For each number: the mean over all worlds of the speed at half and at twice its value, and the worst and the best
// single world.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "worlds/replay.h"
#include "worlds/synthetic.h"

namespace outrider {
namespace {

struct Speeds {
  double mean = 0, worst = 0, best = 0;
};

int Main(int seeds, const std::string& only) {
  std::vector<SyntheticWorld> worlds = SyntheticWorlds();
  for (const SyntheticWorld& world : SyntheticWorldsWithWaits()) worlds.push_back(world);
  std::vector<World> sampled;
  for (const SyntheticWorld& world : worlds) {
    for (int seed = 1; seed <= seeds; ++seed) sampled.push_back(world.Sample(static_cast<uint64_t>(seed)));
  }
  // By world: seconds, over the seeds.
  const auto run = [&](const Tuning& tuning) {
    SpeculatorOptions options;
    options.tuning = tuning;
    std::vector<double> costs(worlds.size());
    for (size_t i = 0; i < sampled.size(); ++i) {
      costs[i / static_cast<size_t>(seeds)] += ReplaySpeculator(sampled[i], i + 1, options).seconds;
    }
    return costs;
  };
  Tuning tuning;
  const std::vector<double> usual = run(tuning);
  const auto compare = [&](const std::vector<double>& costs) {
    Speeds speeds = {0, 10, 0};
    for (size_t i = 0; i < worlds.size(); ++i) {
      const double speed = usual[i] / costs[i];
      speeds.mean += std::log(speed) / static_cast<double>(worlds.size());
      speeds.worst = std::min(speeds.worst, speed);
      speeds.best = std::max(speeds.best, speed);
    }
    speeds.mean = std::exp(speeds.mean);
    return speeds;
  };
  std::printf("%zu worlds, %d seeds each; speed relative to that with the usual values\n\n", worlds.size(), seeds);
  std::printf(
      "| number | value | half: mean | worst | best | twice: mean | worst | best "
      "|\n|---|---|---|---|---|---|---|---|\n");
  const auto measure = [&](const char* name, auto& number, const auto& scaled) {
    if (std::string(name).find(only) == std::string::npos) return;
    const auto value = number;
    std::printf("| `%s` | %g |", name, static_cast<double>(value));
    for (const double factor : {0.5, 2.0}) {
      number = static_cast<std::decay_t<decltype(number)>>(scaled(value, factor));
      const Speeds speeds = compare(run(tuning));
      std::printf(" %.4f | %.3f | %.3f |", speeds.mean, speeds.worst, speeds.best);
    }
    number = value;
    std::printf("\n");
    std::fflush(stdout);
  };
  VisitNumbers(tuning, [&](const char* name, auto& number) {
    measure(name, number, [](double value, double factor) { return value * factor; });
  });
  VisitSharesNearOne(tuning, [&](const char* name, double& share) {
    measure(name, share, [](double value, double factor) { return 1 - (1 - value) * factor; });
  });
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::Main(argc > 1 ? std::max(1, std::atoi(argv[1])) : 1, argc > 2 ? argv[2] : "");
}
