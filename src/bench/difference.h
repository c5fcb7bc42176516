// Why a variant's text differs from the first variant's: where, and how close the two best tokens were there.
#pragma once

#include <string>
#include <vector>

#include "bench/endpoint.h"
#include "bench/record.h"
#include "bench/runner.h"
#include "bench/summary.h"

namespace outrider {

// A sentence about `variant`'s first difference, of which there is at least one. At temperature 0 it asks `first`, the
// first variant of `plan`, once more, for the probabilities of its tokens.
std::string ExplainDifference(const BenchPlan& plan, const std::vector<BenchRecord>& records,
                              const BenchVariantSummary& variant, Endpoint& first);

}  // namespace outrider
