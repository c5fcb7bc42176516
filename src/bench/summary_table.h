// The summary of a benchmark as a table for a terminal.
#pragma once

#include <string>

#include "bench/summary.h"

namespace outrider {

std::string SummaryTable(const BenchSummary& summary);

}  // namespace outrider
