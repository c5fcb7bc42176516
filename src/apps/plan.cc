#include "apps/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "apps/costs.h"
#include "apps/plan_candidates.h"
#include "apps/round_trip.h"
#include "base/file.h"
#include "base/log.h"
#include "bench/prediction.h"
#include "engine/llama/backend.h"
#include "spec/predict.h"

namespace outrider {
namespace {

constexpr int kShownRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void PrintCurve(const CostCurve& curve) {
  fmt::print("  rows of a step ");
  for (const int rows : kShownRows) fmt::print(" {:>6}", rows);
  fmt::print("\n  milliseconds   ");
  for (const int rows : kShownRows) fmt::print(" {:>6.1f}", curve.Seconds(rows, 0) * 1000);
  fmt::print("\n  of one row     ");
  for (const int rows : kShownRows) fmt::print(" {:>6.2f}", curve.Seconds(rows, 0) / curve.Seconds(1, 0));
  fmt::print("\n\n");
}

// Returns the tokens per second of the best one, or of plain decoding if none is faster.
double PrintCandidates(const CostCurve& curve, const std::vector<PlanCandidate>& candidates) {
  const double plain = 1 / curve.Seconds(1, 0);
  double fastest = plain;
  fmt::print("  {:<34} {:>10} {:>9} {:>8} {:>9} {:>8}\n", "drafter", "acceptance", "best k", "speed-up", "simulated",
             "t/s");
  for (const PlanCandidate& candidate : candidates) {
    BestLength best = FindBestLength(curve, candidate.costs, candidate.acceptance);
    std::string simulated = "-";
    double speed_up = best.speed_up;
    if (!candidate.steps.empty()) {
      best = FindBestLength(curve, candidate.costs, candidate.steps);
      simulated = fmt::format("{:.2f}x", best.speed_up);
      speed_up = PredictedSpeedUp(curve, candidate.costs, candidate.acceptance, best.length);
    }
    fmt::print("  {:<34} {:>10.2f} {:>9} {:>7.2f}x {:>9} {:>8.1f}\n", candidate.name, candidate.acceptance,
               best.length == 0 ? "none" : std::to_string(best.length), speed_up, simulated, plain * best.speed_up);
    fastest = std::max(fastest, plain * best.speed_up);
  }
  fmt::print("\n");
  return fastest;
}

Result<RecordedSteps> ReadRecordedSteps(const std::string& path) {
  if (path.empty()) return RecordedSteps();
  const auto text = ReadFile(path);
  if (!text) return InvalidArgument("cannot read " + path);
  const auto records = ParseRecords(*text);
  if (!records.ok()) return InvalidArgument(path + ", " + records.status().message());
  RecordedSteps recorded = StepsByDrafter(*records);
  if (recorded.empty()) return InvalidArgument(path + " contains no drafts");
  return recorded;
}

void PrintDraftModel(const MeasuredCosts& costs) {
  fmt::print("  a drafted token takes {:.2f} ms, {:.3f} of a step\n\n", costs.draft.token_seconds * 1000,
             costs.draft.token_seconds / costs.curve.Seconds(1, 0));
}

void PrintRemote(const MeasuredCosts& costs, double acceptance) {
  const double longest = LongestRoundTrip(costs.curve, costs.draft.token_seconds, acceptance);
  if (longest > 0) {
    fmt::print("  On another machine, with {:.0f} % accepted, it pays up to a round trip of {:.0f} ms.\n\n",
               acceptance * 100, longest * 1000);
  } else {
    fmt::print("  On another machine, with {:.0f} % accepted, it would not pay at any distance.\n\n", acceptance * 100);
  }
}

// Measures one model and prints all about it. Returns its line in the comparison of several models.
Result<std::string> PlanModel(const std::string& path, const PlanOptions& options, PlanAssumptions assumptions) {
  fmt::print(stderr, "measuring {} …\n", FileName(path));
  const auto costs = MeasureCosts(path, options.draft, options.threads, options.gpu_layers);
  if (!costs.ok()) return costs.status();
  assumptions.draft_token_seconds = costs->draft.token_seconds;
  const bool has_draft = costs->draft.token_seconds > 0;
  const double step = costs->curve.Seconds(1, 0);
  fmt::print("{}: {:.1f} tokens per second without drafts\n", FileName(path), 1 / step);
  PrintCurve(costs->curve);
  if (has_draft) PrintDraftModel(*costs);
  const double fastest = PrintCandidates(costs->curve, ListCandidates(assumptions));
  if (has_draft) PrintRemote(*costs, RemoteAcceptance(assumptions));
  return fmt::format("  {:<40} {:>8.1f} {:>12.2f} {:>14.1f}\n", FileName(path), 1 / step,
                     costs->curve.Seconds(4, 0) / step, fastest);
}

}  // namespace

void AddPlanFlags(Flags& flags, PlanOptions& o) {
  flags.Group("Plan");
  flags.Add("-m,--model", o.models, "GGUF file of the model that answers; several, comma-separated, are compared")
      ->delimiter(',');
  flags.Add("-md,--model-draft", o.draft, "GGUF file of a draft model");
  flags
      .Add("--acceptance", o.acceptance,
           "probability that a drafted token is accepted, 0 to 1; default: a table of several")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--from", o.from, "results.jsonl of outrider bench: replays the drafts that were recorded there");
  flags.Add("--rtt", o.round_trip_ms, "round trip to a draft server, in milliseconds")->check(CLI::Range(0.0, 1e5));
  flags.Add("--remote", o.remote,
            "host:port of a draft server, or of anything that listens, to measure the round trip to it");
  flags.Add("-t,--threads", o.threads, "threads; 0 = one per physical core")->check(CLI::Range(0, 4096));
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.gpu_layers, "layers kept on the devices; -1 = all layers")
      ->check(CLI::Range(-1, 1 << 20));
}

Status Plan(const PlanOptions& options) {
  SetLogLevel(LogLevel::kWarning);
  if (options.models.empty()) return InvalidArgument("which model? -m FILE.gguf");
  PlanAssumptions assumptions;
  assumptions.acceptance = options.acceptance;
  auto recorded = ReadRecordedSteps(options.from);
  if (!recorded.ok()) return recorded.status();
  assumptions.recorded = std::move(*recorded);
  if (options.round_trip_ms >= 0) assumptions.round_trip_seconds = options.round_trip_ms / 1000;
  if (!options.remote.empty()) {
    const auto measured = MeasureRoundTripSeconds(options.remote);
    if (!measured.ok()) return measured.status();
    assumptions.round_trip_seconds = *measured;
    fmt::print("{} is {:.2f} ms away\n\n", options.remote, *measured * 1000);
  }
  if (Status status = InitBackend(""); !status.ok()) return status;
  std::string comparison;
  for (const std::string& path : options.models) {
    const auto line = PlanModel(path, options, assumptions);
    if (!line.ok()) return line.status();
    comparison += *line;
  }
  if (options.models.size() > 1) {
    fmt::print("  {:<40} {:>8} {:>12} {:>14}\n{}", "side by side", "t/s", "4 rows cost", "t/s with drafts", comparison);
  }
  return {};
}

}  // namespace outrider
