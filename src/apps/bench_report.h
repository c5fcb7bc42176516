// What `outrider bench` leaves behind: a folder with the report, and the summary on the terminal.
#pragma once

#include <string>
#include <vector>

#include "apps/bench_options.h"
#include "base/status.h"
#include "bench/record.h"
#include "bench/summary.h"

namespace outrider {

// Creates the folder that --out names, or bench-DATE-TIME, and returns its path.
Result<std::string> MakeBenchFolder(const BenchOptions& options);

// Writes report.html into `folder` and prints the summary.
Status WriteBenchReport(const std::string& folder, const BenchHeading& heading, const std::vector<BenchRecord>& records,
                        const BenchSummary& summary);

// Reports on the results of an earlier benchmark (--from).
Status ReportAgain(const BenchOptions& options);

}  // namespace outrider
