// The Speculator in synthetic worlds. Whatever the world, it has to come close to the best fixed draft length, which
// nobody knows beforehand, and must not fall below plain decoding where drafts are worthless.
#include "worlds/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <ostream>
#include <type_traits>

#include "worlds/synthetic.h"

namespace outrider {

void PrintTo(const SyntheticWorld& world, std::ostream* out) {
  *out << world.name;
}

namespace {

class SyntheticWorldTest : public testing::TestWithParam<SyntheticWorld> {};

TEST_P(SyntheticWorldTest, ComesCloseToTheBestFixedLength) {
  double sum = 0;
  constexpr int kSeeds = 3;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const World world = GetParam().Sample(seed);
    const double plain = ReplayPlain(world).seconds;
    const BestFixed best = FindBestFixed(world);
    const double ours = ReplaySpeculator(world, seed + 1).seconds;
    std::printf("%-46s best fixed %2d: %5.2fx  ours: %5.2fx  ours/best %.3f\n", world.name.c_str(), best.setting.length,
                plain / best.result.seconds, plain / ours, best.result.seconds / ours);
    EXPECT_GE(best.result.seconds / ours, GetParam().min_share - kLuck);
    sum += best.result.seconds / ours;
  }
  EXPECT_GE(sum / kSeeds, GetParam().min_share);
}

// Reading a long prompt is not always earned back, so it is only begun where it promises several times its cost, and
// never costs more than a small share. Everywhere else waits and reading must pay.
TEST(WorldsWithWaitsTest, HardlyEverFallBelowPlainDecoding) {
  for (const SyntheticWorld& synthetic : SyntheticWorldsWithWaits()) {
    double plain = 0, ours = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const World world = synthetic.Sample(seed);
      plain += ReplayPlain(world).seconds;
      ours += ReplaySpeculator(world, seed + 1).seconds;
    }
    std::printf("%-46s %5.2fx\n", synthetic.name.c_str(), plain / ours);
    const bool long_prompt = synthetic.drafters[0].unread > 1000;
    EXPECT_GE(plain / ours, long_prompt ? 0.975 : 1.0) << synthetic.name;
  }
}

// No number of the Tuning may matter so much that another machine needs another value: with half and with twice of it
// the worlds below are decoded nearly as fast. bench/policy_sensitivity prints how fast, over all worlds.
TEST(SensitivityTest, HalfAndTwiceOfEachNumberDoNearlyAsWell) {
  std::vector<World> worlds;
  std::vector<SyntheticWorld> all = SyntheticWorlds();
  for (size_t i = 0; i < all.size(); i += 23) {
    all[i].tokens = std::min(all[i].tokens, 1500);
    worlds.push_back(all[i].Sample(1));
  }
  const auto seconds = [&](const Tuning& tuning) {
    SpeculatorOptions options;
    options.tuning = tuning;
    double sum = 0;
    for (const World& world : worlds) sum += std::log(ReplaySpeculator(world, 2, options).seconds);
    return std::exp(sum / static_cast<double>(worlds.size()));
  };
  Tuning tuning;
  const double usual = seconds(tuning);
  int numbers = 0;
  VisitNumbers(tuning, [&](const char* name, auto& number) {
    ++numbers;
    const auto value = number;
    for (const double factor : {0.5, 2.0}) {
      number = static_cast<std::decay_t<decltype(number)>>(value * factor);
      EXPECT_GE(usual / seconds(tuning), 0.95) << name << " times " << factor;
    }
    number = value;
  });
  EXPECT_GT(numbers, 30);
}

INSTANTIATE_TEST_SUITE_P(Worlds, SyntheticWorldTest, testing::ValuesIn(SyntheticWorlds()));

// The oracle knows which tokens are right, so nobody is faster.
TEST(OracleTest, IsNeverSlowerThanTheBestFixedLength) {
  for (const SyntheticWorld& synthetic : SyntheticWorlds()) {
    if (synthetic.switch_cost > 0 || synthetic.tokens > 4000) continue;
    const World world = synthetic.Sample(1);
    const auto oracle = OracleSeconds(world);
    EXPECT_EQ(oracle.has_value(), world.slots == 1 && !world.machine.replays) << world.name;
    if (!oracle) continue;
    EXPECT_LE(*oracle, FindBestFixed(world, 8).result.seconds * 1.0000001) << world.name;
  }
}

}  // namespace
}  // namespace outrider
