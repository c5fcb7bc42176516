// `outrider states`: what a model computes for each token of given texts, as files that `outrider distill` learns from
// (states_file.h).
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"

namespace outrider {

struct StatesOptions {
  std::string model, in, out;
  std::vector<int> layers;  // whose inputs are written; empty = none, only the likeliest tokens
  int top = 64;
  int threads = 0, gpu_layers = -1;
};

void AddStatesFlags(Flags& flags, StatesOptions& options);

Status ExportStates(const StatesOptions& options);

}  // namespace outrider
