#include "worlds/synthetic.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <utility>

namespace outrider {
namespace {

constexpr double kPlainSeconds = 0.01;  // of a step of one row
constexpr int kShortPrompt = 16;

double Uniform(Random& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

// ---- costs ----

double Interpolated(std::initializer_list<std::pair<int, double>> points, int rows) {
  auto high = points.begin();
  while (high != points.end() && high->first < rows) ++high;
  if (high == points.begin()) return high->second;
  if (high == points.end()) {
    const auto last = points.end() - 1, before = last - 1;
    return last->second + (rows - last->first) * (last->second - before->second) / (last->first - before->first);
  }
  const auto low = high - 1;
  return low->second + (rows - low->first) * (high->second - low->second) / (high->first - low->first);
}

double Flat(int rows) {
  return 1 + 0.01 * (rows - 1);
}
double Mild(int rows) {
  return 1 + 0.1 * (rows - 1);
}
double Steep(int rows) {
  return rows;
}
double IceLake(int rows) {
  return Interpolated({{1, 1}, {2, 1.5}, {3, 1.8}, {4, 1.26}, {5, 1.6}, {8, 2.2}, {16, 3.8}}, rows);
}
double Zen4(int rows) {
  return Interpolated({{1, 1}, {2, 1.9}, {3, 2.6}, {4, 2.5}, {5, 3.2}, {8, 4.4}, {16, 6.6}}, rows);
}
double Gpu(int rows) {
  return (rows < 2 ? 1 : rows < 5 ? 1.2 : rows < 9 ? 1.5 : rows < 17 ? 1.9 : 2.8) + 0.01 * rows;
}

// ---- chances ----

Chances Constant(double chance) {
  return [=](int tokens, Random&) { return std::vector<double>(static_cast<size_t>(tokens), chance); };
}

Chances Switching(double before, double after, int when) {
  return [=](int tokens, Random&) {
    std::vector<double> chances(static_cast<size_t>(tokens), before);
    std::fill(chances.begin() + when, chances.end(), after);
    return chances;
  };
}

// Passages of about `good_tokens` that are copied, and what lies between.
Chances Bursty(double good, int good_tokens, double bad, int bad_tokens) {
  return [=](int tokens, Random& random) {
    std::vector<double> chances;
    for (bool is_good = false; chances.size() < static_cast<size_t>(tokens); is_good = !is_good) {
      const double mean = is_good ? good_tokens : bad_tokens;
      chances.insert(chances.end(), static_cast<size_t>(mean * (0.5 + Uniform(random))) + 1, is_good ? good : bad);
    }
    chances.resize(static_cast<size_t>(tokens));
    return chances;
  };
}

// Log odds wander around those of `mean`.
Chances Autocorrelated(double mean, double memory_tokens, double spread) {
  return [=](int tokens, Random& random) {
    const double centre = std::log(mean / (1 - mean)), kept = std::exp(-1 / memory_tokens);
    std::normal_distribution<double> gauss(0, spread * std::sqrt(1 - kept * kept));
    std::vector<double> chances;
    double deviation = 0;
    for (int i = 0; i < tokens; ++i) {
      deviation = deviation * kept + gauss(random);
      chances.push_back(1 / (1 + std::exp(-centre - deviation)));
    }
    return chances;
  };
}

// Good for just as long as it takes to be trusted, then bad.
Chances Alternating(int good_tokens, int bad_tokens) {
  return [=](int tokens, Random&) {
    std::vector<double> chances;
    for (int i = 0; i < tokens; ++i) chances.push_back(i % (good_tokens + bad_tokens) < good_tokens ? 1 : 0);
    return chances;
  };
}

// ---- confidences ----

Confidence Always(double confidence) {
  return [=](double, bool, Random&) { return confidence; };
}

// Knows more than the average: nearer to 1 where it is right.
Confidence Informed(double knowledge) {
  return [=](double chance, bool right, Random& random) {
    const double truth = right ? 1 : 0;
    return std::clamp(chance + knowledge * (truth - chance) * Uniform(random), 0.0, 1.0);
  };
}

Confidence Random01() {
  return [](double, bool, Random& random) { return Uniform(random); };
}

Cost RowsOff(const Cost& cost, double factor) {
  return [=](int rows) { return cost(1) + (cost(rows) - cost(1)) * factor; };
}

std::string Short(double number) {
  return std::to_string(number).substr(0, 4);
}

void AddLookups(const std::string& on, const Cost& cost, std::vector<SyntheticWorld>& worlds) {
  for (const double chance : {0.2, 0.5, 0.8, 0.95}) {
    worlds.push_back({"constant " + Short(chance) + on, kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  const Chances bursty = Bursty(0.98, 60, 0.05, 200);
  worlds.push_back({"bursty" + on, kFriendly, cost, {{bursty, Always(0.7)}}});
  worlds.push_back({"bursty, informed" + on, kFriendly, cost, {{bursty, Informed(0.7)}}});
  worlds.push_back({"autocorrelated" + on, kFriendly, cost, {{Autocorrelated(0.6, 30, 2), Always(0.6)}}});
  worlds.push_back({"autocorrelated, informed" + on, kFriendly, cost, {{Autocorrelated(0.6, 5, 2), Informed(0.5)}}});
  worlds.push_back({"dies after 1000" + on, kFriendly, cost, {{Switching(0.9, 0.02, 1000), Always(0.8)}}});
  worlds.push_back({"gets good after 1000" + on, kFriendly, cost, {{Switching(0.02, 0.9, 1000), Always(0.8)}}});
  worlds.push_back(
      {"two drafters" + on, kFriendly, cost, {{Constant(0.3), Always(0.9)}, {Constant(0.8), Always(0.5)}}});
  SyntheticWorld load = {"load 1 to 4 sequences" + on, kFriendly, cost, {{Constant(0.7), Informed(0.3)}}};
  SyntheticWorld disturbed = {"disturbed 0.80" + on, kFriendly, cost, {{Constant(0.8), Always(0.6)}}};
  disturbed.disturbed = true;
  worlds.push_back(disturbed);
  load.tokens = 2000;
  load.arrivals = {0, 500, 1000, 1000};
  worlds.push_back(load);
}

void AddHostile(const std::string& on, const Cost& cost, std::vector<SyntheticWorld>& worlds) {
  worlds.push_back({"confident and always wrong" + on, kHostile, cost, {{Constant(0), Always(0.99)}}});
  worlds.push_back({"random confidence, right 0.1" + on, kHostile, cost, {{Constant(0.1), Random01()}}});
  worlds.push_back({"alternating 8 and 40" + on, kHostile, cost, {{Alternating(8, 40), Always(0.9)}}});
  worlds.push_back({"alternating 3 and 3" + on, kHostile, cost, {{Alternating(3, 3), Always(0.9)}}});
}

void AddComputing(const std::string& on, const Cost& cost, std::vector<SyntheticWorld>& worlds) {
  for (const double price : {0.05, 0.2, 1.0}) {
    const std::string drafting = ", draft " + Short(price) + on;
    worlds.push_back({"constant 0.8" + drafting, kFriendly, cost, {{Constant(0.8), Informed(0.3), price}}});
    worlds.push_back({"bursty" + drafting, kFriendly, cost, {{Bursty(0.98, 100, 0.2, 100), Informed(0.3), price}}});
    worlds.push_back({"constant 0.05" + drafting, kHostile, cost, {{Constant(0.05), Always(0.9), price}}});
  }
}

void AddMiscalibrated(const std::string& on, const Cost& cost, std::vector<SyntheticWorld>& worlds) {
  for (const double chance : {0.5, 0.8, 0.95}) {
    for (const double factor : {0.5, 2.0}) {
      const std::string name = "constant " + Short(chance) + ", rows calibrated x" + Short(factor) + on;
      worlds.push_back({name, kFriendly, cost, {{Constant(chance), Always(0.8)}}, RowsOff(cost, factor)});
    }
  }
}

void AddReplaying(const std::string& on, const Cost& cost, std::vector<SyntheticWorld>& worlds) {
  std::vector<SyntheticWorld> replaying;
  for (const double chance : {0.5, 0.8, 0.95}) {
    replaying.push_back({"constant " + Short(chance), kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  replaying.push_back({"bursty", kFriendly, cost, {{Bursty(0.98, 60, 0.05, 200), Informed(0.7)}}});
  replaying.push_back({"confident and always wrong", kHostile, cost, {{Constant(0), Always(0.99)}}});
  replaying.push_back({"random confidence, right 0.1", kHostile, cost, {{Constant(0.1), Random01()}}});
  for (SyntheticWorld& world : replaying) {
    world.name += ", replaying" + on;
    world.replays = true;
    worlds.push_back(std::move(world));
  }
}

void AddSwitching(const std::string& on, const Cost& cost, double switch_cost, std::vector<SyntheticWorld>& worlds) {
  std::vector<SyntheticWorld> switching;
  for (const double chance : {0.5, 0.8, 0.95}) {
    switching.push_back({"constant " + Short(chance), kFriendly, cost, {{Constant(chance), Always(0.6)}}});
  }
  switching.push_back({"random confidence, right 0.1", kHostile, cost, {{Constant(0.1), Random01()}}});
  switching.push_back({"bursty, informed", kFriendly, cost, {{Bursty(0.98, 60, 0.05, 200), Informed(0.7)}}});
  switching.push_back({"constant 0.05, draft 0.2", kHostile, cost, {{Constant(0.05), Always(0.9), 0.2}}});
  switching.push_back({"constant 0.8, draft 0.2", kFriendly, cost, {{Constant(0.8), Informed(0.3), 0.2}}});
  SyntheticWorld load = {"load 1 to 4 sequences", kFriendly, cost, {{Constant(0.7), Informed(0.3)}}};
  load.tokens = 2000;
  load.arrivals = {0, 500, 1000, 1000};
  switching.push_back(load);
  load.name = "load, draft 0.2";
  load.drafters[0].token_cost = 0.2;
  switching.push_back(load);
  for (SyntheticWorld& world : switching) {
    world.name += ", switching" + on;
    world.switch_cost = switch_cost;
    if (world.min_share < kHostile) world.min_share = switch_cost > 1 ? kRestless : kUnsettled;
    if (world.arrivals.size() > 1 && world.drafters[0].token_cost > 0)
      world.min_share = std::min(world.min_share, kShared);
    worlds.push_back(std::move(world));
  }
}

// How a drafter fares at each position of one answer, whoever asks and whenever.
Predictions Fortune(const DrafterScript& script, int tokens, Random& random) {
  std::vector<PredictedToken> fortune;
  for (const double chance : script.chances(tokens, random)) {
    const bool right = Uniform(random) < chance;
    fortune.push_back({right, static_cast<float>(script.confidence(chance, right, random))});
  }
  return [fortune = std::make_shared<const std::vector<PredictedToken>>(std::move(fortune))](
             int position, int index) -> std::optional<PredictedToken> {
    const auto at = static_cast<size_t>(position + index);
    if (at >= fortune->size()) return std::nullopt;
    return (*fortune)[at];
  };
}

}  // namespace

World SyntheticWorld::Sample(uint64_t seed) const {
  World world;
  world.name = name;
  world.slots = static_cast<int>(arrivals.size());
  WorldMachine& machine = world.machine;
  machine.step_seconds = [c = cost](int rows, int) { return kPlainSeconds * c(rows); };
  if (calibrated) machine.calibrated = [c = calibrated](int rows) { return kPlainSeconds * c(rows); };
  machine.switch_seconds = kPlainSeconds * switch_cost;
  machine.noise = noise;
  machine.disturbed = disturbed;
  machine.replays = replays;
  machine.save_seconds = kPlainSeconds * save_cost;
  machine.restore_seconds = kPlainSeconds * restore_cost;
  int prompt = kShortPrompt;
  for (const DrafterScript& script : drafters) {
    world.drafters.push_back({"scripted", kPlainSeconds * script.token_cost, 0, kPlainSeconds * script.read_cost,
                              kPlainSeconds * script.delay});
    prompt = std::max(prompt, script.unread);
  }
  for (const int arrival : arrivals) world.requests.push_back({prompt, tokens, arrival, {}});
  Random random(seed);
  for (const DrafterScript& script : drafters) {
    for (WorldRequest& request : world.requests) request.predictions.push_back(Fortune(script, tokens, random));
  }
  return world;
}

std::vector<SyntheticWorld> SyntheticWorlds() {
  std::vector<SyntheticWorld> worlds;
  const std::pair<std::string, Cost> curves[] = {
      {", flat", Flat}, {", mild", Mild}, {", Ice Lake", IceLake}, {", Zen 4", Zen4}, {", GPU", Gpu}};
  for (const auto& [on, cost] : curves) {
    AddLookups(on, cost, worlds);
    AddHostile(on, cost, worlds);
    AddMiscalibrated(on, cost, worlds);
    AddReplaying(on, cost, worlds);
  }
  AddComputing(", mild", Mild, worlds);
  AddComputing(", Ice Lake", IceLake, worlds);
  AddComputing(", GPU", Gpu, worlds);
  AddSwitching(", mild", Mild, 0.5, worlds);
  AddSwitching(", GPU", Gpu, 2, worlds);  // as on an H200
  worlds.push_back({"constant 0.8, steep", kHostile, Steep, {{Constant(0.8), Always(0.8)}}});
  worlds.push_back({"bursty, steep", kHostile, Steep, {{Bursty(0.98, 60, 0.05, 200), Always(0.7)}}});
  for (const double chance : {0.5, 0.8, 0.95}) {
    const std::string name = "constant " + Short(chance);
    worlds.push_back({name + ", flat but is Zen 4", kNonsense, Zen4, {{Constant(chance), Always(0.8)}}, Flat});
    worlds.push_back({name + ", Zen 4 but is GPU", kNonsense, Gpu, {{Constant(chance), Always(0.8)}}, Zen4});
  }
  return worlds;
}

std::vector<SyntheticWorld> SyntheticWorldsWithWaits() {
  std::vector<SyntheticWorld> worlds;
  for (const int tokens : {40, 200}) {
    for (const int unread : {100, 2000}) {
      for (const double price : {0.05, 0.2}) {
        SyntheticWorld world = {
            "reads " + std::to_string(unread) + ", answers of " + std::to_string(tokens) + ", draft " + Short(price),
            kHostile,
            Mild,
            {{Constant(0.8), Informed(0.3), price, unread, price / 20}}};
        world.tokens = tokens;
        worlds.push_back(world);
      }
    }
  }
  for (const double chance : {0.5, 0.8, 0.95}) {
    for (const double delay : {0.1, 0.4, 1.5}) {
      worlds.push_back({"far " + Short(delay) + ", constant " + Short(chance),
                        kHostile,
                        Mild,
                        {{Constant(chance), Always(0.8), 0, 0, 0, delay}}});
    }
  }
  return worlds;
}

}  // namespace outrider
