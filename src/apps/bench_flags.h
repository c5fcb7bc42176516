// The flags of `outrider bench`: one line of help for each field of BenchOptions.
#pragma once

#include "apps/bench_options.h"
#include "apps/flags.h"

namespace outrider {

void AddBenchFlags(Flags& flags, BenchOptions& options);

}  // namespace outrider
