#include "apps/bench_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "bench/report.h"
#include "bench/summary_table.h"

namespace outrider {

Result<std::string> MakeBenchFolder(const BenchOptions& options) {
  std::string folder = options.out;
  if (folder.empty()) folder = fmt::format("bench-{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return InvalidArgument(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  return folder;
}

Status WriteBenchReport(const std::string& folder, const BenchHeading& heading, const std::vector<BenchRecord>& records,
                        const BenchSummary& summary) {
  fmt::print("{}", SummaryTable(summary));
  for (const auto& [name, bytes] : heading.peak_bytes) fmt::print("{}: {:.0f} MB peak memory\n", name, bytes / 1e6);
  for (const BenchPrediction& each : heading.predictions) {
    fmt::print("{}: measured {:.2f}x over all answers; {:.2f}x predicted from the measured cost of steps\n",
               each.variant, each.measured, each.predicted);
  }
  for (const auto& [name, sentence] : heading.explained) fmt::print("{}: {}\n", name, sentence);
  const std::string path = folder + "/report.html";
  std::ofstream page(path);
  page << ReportPage(ReportJson(heading, records, summary)) << std::flush;
  if (!page) return Internal("could not write " + path + ": is the disk full?");
  fmt::print("\nThe plots are in {}, all answers in {}/results.jsonl.\n", path, folder);
  return {};
}

Status ReportAgain(const BenchOptions& options) {
  const auto text = ReadFile(options.from);
  if (!text) return InvalidArgument("cannot read " + options.from);
  BenchHeading heading;
  const auto records = ParseRecords(*text, &heading);
  if (!records.ok()) return InvalidArgument(options.from + ", " + records.status().message());
  const auto folder = MakeBenchFolder(options);
  if (!folder.ok()) return folder.status();
  return WriteBenchReport(*folder, heading, *records, SummariseRecords(*records));
}

}  // namespace outrider
