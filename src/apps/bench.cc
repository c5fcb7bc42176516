#include "apps/bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "apps/bench_plan.h"
#include "apps/bench_progress.h"
#include "apps/bench_report.h"
#include "apps/command_line.h"
#include "apps/costs.h"
#include "apps/end_signals.h"
#include "apps/machine_cache.h"
#include "apps/record.h"
#include "apps/variant_servers.h"
#include "apps/version.h"
#include "base/log.h"
#include "bench/difference.h"
#include "bench/prediction.h"
#include "bench/runner.h"
#include "bench/summary.h"
#include "engine/llama/backend.h"

namespace outrider {
namespace {

// Nothing if all servers run already, so that there is no model to measure.
Result<std::optional<MeasuredCosts>> MeasureStepCosts(const BenchOptions& options) {
  if (options.model.empty()) return std::optional<MeasuredCosts>();
  fmt::print(stderr, "measuring what steps cost …\n");
  if (Status status = InitBackend(""); !status.ok()) return status;
  auto measured = MeasureCosts(options.model, options.draft, options.threads, options.gpu_layers);
  if (!measured.ok()) return measured.status();
  return std::optional(std::move(*measured));
}

// Adds the variants to the plan as their servers become ready. Returns early, without an error, when `stop` is set.
Status StartAll(std::vector<VariantServer>& servers, const BenchOptions& options, const std::string& folder,
                const std::atomic<bool>& stop, BenchPlan* plan) {
  for (VariantServer& server : servers) {
    if (stop) return {};
    fmt::print(stderr, "{} '{}' …\n", server.command.empty() ? "connecting to" : "starting", server.name);
    if (Status status = StartVariant(server, options, folder, stop); !status.ok()) return stop ? Status() : status;
    plan->variants.push_back({server.name, server.endpoint.get()});
  }
  const Status status = WarmUp(*plan);
  return stop ? Status() : status;
}

BenchHeading MakeHeading(const BenchOptions& options) {
  BenchHeading heading = {"Outrider bench", fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr))),
                          ProcessorName(), VersionLine(), PrintableCommandLine(OwnCommandLine())};
  if (!options.model.empty()) heading.title += ": " + std::filesystem::path(options.model).filename().string();
  return heading;
}

// Asks everything. Each record is written to `results` at once, so that it is kept whatever happens later.
Status AskAll(const BenchPlan& plan, const std::atomic<bool>& stop, std::ofstream& results,
              std::vector<BenchRecord>* records) {
  BenchProgress progress(plan.Requests(), isatty(STDERR_FILENO) == 1, Clock::Real());
  const auto print = [](const std::string& text) {
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
  };
  EnergyMeter energy;
  const Status status = RunBench(
      plan, energy,
      [&](BenchRecord record) {
        results << DumpJson(RecordJson(record)) << '\n' << std::flush;
        print(progress.Add(record));
        if (!record.error.empty()) print(fmt::format("\n{}: {}\n", record.variant, record.error));
        records->push_back(std::move(record));
      },
      stop);
  print(progress.End());
  return status;
}

// What can be said about the variants once all answers are there, while their servers still run.
void CompleteHeading(const BenchPlan& plan, const std::vector<VariantServer>& servers,
                     const std::optional<MeasuredCosts>& costs, const std::vector<BenchRecord>& records,
                     const BenchSummary& summary, const std::atomic<bool>& stop, BenchHeading* heading) {
  std::vector<std::string> outriders;
  for (const VariantServer& server : servers) {
    if (server.process) heading->peak_bytes[server.name] = server.process->PeakBytes();
    if (server.is_outrider) outriders.push_back(server.name);
  }
  for (const BenchVariantSummary& variant : summary.variants) {
    if (variant.with_first.differences.empty() || stop) continue;
    heading->explained[variant.name] = ExplainDifference(plan, records, variant, *plan.variants.front().endpoint);
  }
  if (costs) heading->predictions = PredictRecords(records, outriders, costs->curve, costs->draft);
}

}  // namespace

Status Bench(const BenchOptions& options, bool* complete) {
  SetLogLevel(LogLevel::kWarning);
  if (!options.from.empty()) {
    const Status status = ReportAgain(options);
    *complete = status.ok();
    return status;
  }
  if (!options.record.empty()) {
    const Status status = RecordWorld(options);
    *complete = status.ok();
    return status;
  }
  static std::atomic<bool> stop = false;
  static EndSignals signals([](int signal, int count) {
    if (count > 1) std::_Exit(128 + signal);
    stop = true;
  });
  auto plan = MakeBenchPlan(options);
  if (!plan.ok()) return plan.status();
  auto servers = ListVariants(options);
  if (!servers.ok()) return servers.status();
  const auto folder = MakeBenchFolder(options);
  if (!folder.ok()) return folder.status();
  const auto costs = MeasureStepCosts(options);
  if (!costs.ok()) return costs.status();
  if (Status status = StartAll(*servers, options, *folder, stop, &*plan); !status.ok()) return status;
  if (stop) {
    fmt::print(stderr, "Stopped before anything was measured.\n");
    return {};
  }

  BenchHeading heading = MakeHeading(options);
  const std::string results_path = *folder + "/results.jsonl";
  std::ofstream results(results_path);
  results << DumpJson(HeadingJson(heading)) << '\n';
  std::vector<BenchRecord> records;
  Status status = AskAll(*plan, stop, results, &records);
  const BenchSummary summary = SummariseRecords(records);
  CompleteHeading(*plan, *servers, *costs, records, summary, stop, &heading);
  results << DumpJson(HeadingJson(heading)) << '\n' << std::flush;
  if (!results && status.ok()) status = Internal("could not write all of " + results_path + ": is the disk full?");
  const Status reported = WriteBenchReport(*folder, heading, records, summary);
  if (status.ok()) status = reported;
  if (stop) fmt::print(stderr, "Stopped early: {} of {} answers.\n", records.size(), plan->Requests());
  const bool failures = std::any_of(records.begin(), records.end(), [](const auto& r) { return !r.error.empty(); });
  *complete = status.ok() && !failures && !stop;
  return status;
}

}  // namespace outrider
