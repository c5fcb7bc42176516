// The report of a benchmark: one page that works offline, with plots to look into.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/prediction.h"
#include "bench/record.h"
#include "bench/summary.h"

namespace outrider {

struct BenchHeading {
  std::string title, date, machine, version;
  std::string command;  // that makes this report again
};

// All that the page shows. `explained`: by variant, a sentence about the first place where its text differs.
Json ReportJson(const BenchHeading& heading, const std::vector<BenchRecord>& records, const BenchSummary& summary,
                const std::map<std::string, std::string>& explained,
                const std::vector<BenchPrediction>& predictions = {});

std::string ReportPage(const Json& report);

}  // namespace outrider
