// Synthetic worlds: drafters that are right by a random process, steps that cost what a curve says. They stress the
// Speculator where no recorded machine does: free and expensive steps, wrong calibrations, drafters that change.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "worlds/world.h"

namespace outrider {

// The min throughput that tests require in a world, as a share of that of the best fixed draft length (which may be 0).
// The mean over the seeds must reach this share, and each single seed the share less kLuck.
inline constexpr double kFriendly = 0.95;
inline constexpr double kHostile = 0.98;
inline constexpr double kUnsettled = 0.9;  // worlds in which a change of the draft length costs half a plain step
inline constexpr double kRestless = 0.75;  // worlds in which it costs two plain steps
inline constexpr double kShared = 0.85;    // several requests and expensive drafts: each request keeps its pace
inline constexpr double kNonsense = 0.8;   // the calibration was made on a machine with quite different costs
inline constexpr double kLuck = 0.03;

using Random = std::mt19937_64;

// P(right) at each position of an answer.
using Chances = std::function<std::vector<double>(int tokens, Random&)>;

// What the drafter says of itself, given its chance there and whether it is right.
using Confidence = std::function<double(double chance, bool right, Random&)>;

// Costs are in plain steps.
struct DrafterScript {
  Chances chances;
  Confidence confidence;
  double token_cost = 0;  // 0 = looks things up
  int unread = 0;         // tokens of each prompt that it must read before it can draft
  double read_cost = 0;   // of one of these
  double delay = 0;       // after it was wrong, its next draft arrives so much later (a draft server)
};

using Cost = std::function<double(int rows)>;

struct SyntheticWorld {
  std::string name;
  double min_share;  // one of the shares above
  Cost cost;
  std::vector<DrafterScript> drafters;
  Cost calibrated = nullptr;        // what the calibration saw; null = the truth
  int tokens = 4000;                // of each request
  std::vector<int> arrivals = {0};  // when each request begins, in tokens of the first
  bool disturbed = false;           // every other 400 tokens the machine takes twice as long
  double noise = 0.12;              // of step times, relative
  double switch_cost = 0;           // of a step with other rows than the one before
  bool replays = false;             // a running state: what follows a wrong token is decoded again
  double save_cost = 0.02;          // if so: before a draft
  double restore_cost = 0.03;       // and after a wrong one

  // A world of this kind; another one for each seed.
  World Sample(uint64_t seed) const;
};

// Worlds that are compared with the best fixed length.
std::vector<SyntheticWorld> SyntheticWorlds();

// Worlds that no fixed length can be compared with: drafters that must read a prompt first, in answers of few tokens,
// and drafts that come from far away.
std::vector<SyntheticWorld> SyntheticWorldsWithWaits();

}  // namespace outrider
