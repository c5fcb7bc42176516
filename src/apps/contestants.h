// The servers of a benchmark: those it starts, and those that run already.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench.h"
#include "apps/child_process.h"
#include "base/status.h"
#include "bench/endpoint.h"

namespace outrider {

struct Contestant {
  std::string name;
  std::vector<std::string> command;  // of a server that is started; without host and port
  std::string url;                   // of one that runs already
  std::unique_ptr<ChildProcess> process;
  std::unique_ptr<Endpoint> endpoint;
};

// What the options ask for, none of them started. kInvalidArgument says which flag is wrong.
Result<std::vector<Contestant>> Contestants(const BenchOptions& options);

// Starts it if need be, with its log in `folder`, and waits until it answers, or `stop`.
Status StartContestant(Contestant& contestant, const BenchOptions& options, const std::string& folder,
                       const std::atomic<bool>& stop);

}  // namespace outrider
