// The report of a benchmark: one HTML page that works offline, with interactive plots.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "bench/record.h"
#include "bench/summary.h"

namespace outrider {

// All data that the page shows.
Json ReportJson(const BenchHeading& heading, const std::vector<BenchRecord>& records, const BenchSummary& summary);

std::string ReportPage(const Json& report);

}  // namespace outrider
