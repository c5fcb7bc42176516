// The drafters that `outrider plan` compares.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "spec/predict.h"

namespace outrider {

// A drafter that might be used.
struct PlanCandidate {
  std::string name;
  DraftCosts costs;
  double acceptance = 0;         // probability that a drafted token is accepted
  std::vector<TakenStep> steps;  // recorded by outrider bench; empty = only the acceptance is known
};

// The steps of a benchmark, by variant and drafter (bench/prediction.h).
using RecordedSteps = std::map<std::pair<std::string, std::string>, std::vector<TakenStep>>;

struct PlanAssumptions {
  double draft_token_seconds = 0;  // 0 = there is no draft model
  double round_trip_seconds = -1;  // to a draft server; -1 = there is none
  double acceptance = -1;          // -1 = not known
  RecordedSteps recorded = {};
};

// Recorded drafters as they were; drafters with an assumed acceptance where one was given or nothing was recorded.
// Those that compute are listed a second time as draft servers, if a round trip is known.
std::vector<PlanCandidate> ListCandidates(const PlanAssumptions& assumptions);

// The acceptance of a draft model on another machine: as given, else as recorded, else 0.7.
double RemoteAcceptance(const PlanAssumptions& assumptions);

}  // namespace outrider
