// How well the Speculator does in each recorded and synthetic world: against plain decoding, the best fixed setting in
// hindsight, and an oracle (docs/WORLDS.md explains the table).
//
//   build/release/bin/regret [--all] [--seeds N] [--worlds bench/worlds/worlds.json] [NAME…]
//
// Recorded worlds, whose names contain one of NAME; --all: the synthetic ones too.
#include "worlds/regret.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "worlds/recorded.h"
#include "worlds/synthetic.h"

namespace outrider {
namespace {

bool Wanted(const std::string& name, const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    if (name.find(filter) != std::string::npos) return true;
  }
  return filters.empty();
}

void Print(const Regret& regret) {
  std::string drafters;
  for (size_t i = 0; i < regret.drafters.size(); ++i) {
    drafters += fmt::format(" {} {:.2f}/{:.2f}", regret.drafters[i], regret.accepted[i], regret.drafted[i]);
  }
  fmt::print("| {} | {:.2f} | {:.2f} | {} | {} | {:.3f} | {:.2f} |{} |\n", regret.world, regret.of_plain,
             regret.of_best_fixed, regret.best_fixed, regret.of_oracle ? fmt::format("{:.2f}", *regret.of_oracle) : "",
             regret.slowest_request, regret.p10_request, drafters);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  std::string catalogue = "bench/worlds/worlds.json";
  std::vector<std::string> filters;
  bool all = false;
  int seeds = 3;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--all") {
      all = true;
    } else if (argument == "--seeds" && i + 1 < argc) {
      seeds = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--worlds" && i + 1 < argc) {
      catalogue = argv[++i];
    } else {
      filters.push_back(argument);
    }
  }
  const auto recorded = RecordedWorlds::Load(catalogue);
  if (!recorded.ok()) {
    fmt::print(stderr, "{}\n", recorded.status().message());
    return 2;
  }
  fmt::print(
      "| world | of plain | of best fixed | which | of oracle | slowest request | p10 | accepted/drafted per token "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const World& world : recorded->worlds()) {
    if (Wanted(world.name, filters)) Print(MeasureRegret(world, {}, seeds));
  }
  if (!all) return 0;
  for (const SyntheticWorld& world : SyntheticWorlds()) {
    if (Wanted(world.name, filters)) Print(MeasureRegret(world.Sample(1), {}, seeds));
  }
  for (const SyntheticWorld& world : SyntheticWorldsWithWaits()) {
    if (Wanted(world.name, filters)) Print(MeasureRegret(world.Sample(1), {}, seeds));
  }
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  return outrider::Main(argc, argv);
}
