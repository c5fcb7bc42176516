// `outrider bench`: how fast variants of a server answer, compared on the same prompts, and whether their texts agree.
#pragma once

#include "apps/bench_options.h"
#include "base/status.h"

namespace outrider {

// Prints the summary. *complete: every request was answered. An error says what prevented the benchmark or ended it
// early; what was measured by then is in the folder.
Status Bench(const BenchOptions& options, bool* complete);

}  // namespace outrider
