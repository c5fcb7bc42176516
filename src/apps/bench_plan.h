// What `outrider bench` is going to ask, from its options.
#pragma once

#include <string>

#include "apps/bench_options.h"
#include "base/status.h"
#include "bench/runner.h"

namespace outrider {

// A number of tokens for --context: "300", or "2k" for 2048.
Result<int> ParseContextTokens(const std::string& text);

// Without variants, which are added as their servers start. kInvalidArgument says which flag is wrong.
Result<BenchPlan> MakeBenchPlan(const BenchOptions& options);

}  // namespace outrider
