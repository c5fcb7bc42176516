// The servers of a benchmark, one for each variant: those that it starts, and those that run already.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench_options.h"
#include "apps/child_process.h"
#include "base/status.h"
#include "bench/endpoint.h"

namespace outrider {

struct VariantServer {
  std::string name;
  std::vector<std::string> command = {};  // of a server to start, without host and port; empty = it runs already
  bool is_outrider = false;               // started by us, so its steps are like those that outrider plan measures
  std::string url = {};                   // of a server that runs already
  std::unique_ptr<ChildProcess> process = {};
  std::unique_ptr<Endpoint> endpoint = {};
};

// The servers that the options ask for, none of them started. kInvalidArgument says which flag is wrong.
Result<std::vector<VariantServer>> ListVariants(const BenchOptions& options);

// Starts the server if it does not run yet, with its log in `folder`, and waits until it answers or `stop` is set.
Status StartVariant(VariantServer& server, const BenchOptions& options, const std::string& folder,
                    const std::atomic<bool>& stop);

}  // namespace outrider
