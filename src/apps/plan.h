// `outrider plan`: predicts the speed-up of drafting with these models on this machine, from a few seconds of
// measuring.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"

namespace outrider {

struct PlanOptions {
  std::vector<std::string> models;  // e.g. one model in several quantisations
  std::string draft;
  double acceptance = -1;  // -1 = not known
  std::string from;        // results.jsonl of outrider bench: recorded drafts
  double round_trip_ms = -1;
  std::string remote;  // host:port of a draft server, to measure the round trip
  int threads = 0, gpu_layers = -1;
};

void AddPlanFlags(Flags& flags, PlanOptions& options);

// Prints tables to standard output.
Status Plan(const PlanOptions& options);

}  // namespace outrider
