// `outrider bench --record`: writes down what a policy for speculation is judged by, so that it can be replayed in
// milliseconds on any machine (worlds/): the answers of a target with what every drafter would have said at every
// position, and what steps and drafts cost here.
#pragma once

#include "apps/bench_options.h"
#include "base/status.h"

namespace outrider {

// Writes <options.record>.workload.jsonl and <options.record>.machine.json.
Status RecordWorld(const BenchOptions& options);

}  // namespace outrider
