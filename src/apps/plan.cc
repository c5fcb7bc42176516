#include "apps/plan.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/costs.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/free_with.h"
#include "base/log.h"
#include "bench/prediction.h"
#include "engine/llama/backend.h"
#include "spec/predict.h"

namespace outrider {
namespace {

constexpr int kTries = 5;
constexpr int kShownRows[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr double kShownAcceptance[] = {0.3, 0.5, 0.6, 0.7, 0.8, 0.9};

// Of opening a connection, which takes one; the fastest of some.
Result<double> RoundTripSeconds(const std::string& remote) {
  const auto address = ParseAddress(remote);
  if (!address.ok()) return address.status();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address->host.c_str(), std::to_string(address->port).c_str(), &hints, &found) != 0) {
    return Unavailable(fmt::format("cannot find {}", address->host));
  }
  const std::unique_ptr<addrinfo, FreeWith<freeaddrinfo>> owned(found);
  double best = -1;
  for (const addrinfo* each = found; each != nullptr && best < 0; each = each->ai_next) {
    for (int i = 0; i < kTries; ++i) {
      const File connection(socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol));
      const timeval patience = {2, 0};
      setsockopt(connection.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      const TimePoint start = Clock::Real().Now();
      if (connect(connection.descriptor(), each->ai_addr, each->ai_addrlen) != 0) break;
      const double seconds = Milliseconds(Clock::Real().Now() - start) / 1000;
      best = best < 0 ? seconds : std::min(best, seconds);
    }
  }
  if (best < 0) return Unavailable(fmt::format("nobody listens on {}", remote));
  return best;
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

// A drafter that might be used.
struct Candidate {
  std::string name;
  DraftCosts costs;
  double acceptance = 0;
  std::vector<TakenStep> steps;  // empty: only the share is known
};

// Returns the tokens a second of the best.
double PrintCandidates(const CostCurve& curve, const std::vector<Candidate>& candidates) {
  const double plain = 1 / curve.Seconds(1, 0);
  double fastest = plain;
  fmt::print("  {:<34} {:>10} {:>9} {:>8} {:>9} {:>8}\n", "drafter", "acceptance", "best k", "speed-up", "simulated",
             "t/s");
  for (const Candidate& candidate : candidates) {
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

using Recorded = std::map<std::pair<std::string, std::string>, std::vector<TakenStep>>;  // by variant and drafter

std::vector<Candidate> Candidates(const PlanOptions& options, const MeasuredCosts& costs, double round_trip,
                                  const Recorded& recorded) {
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name, double token_seconds, double acceptance,
                       const std::vector<TakenStep>& steps) {
    candidates.push_back({name, {token_seconds}, acceptance, steps});
    if (token_seconds > 0 && round_trip >= 0) {
      candidates.push_back({fmt::format("{}, {:.0f} ms away", name, round_trip * 1000),
                            {token_seconds, true, round_trip},
                            acceptance,
                            steps});
    }
  };
  for (const auto& [key, steps] : recorded) {
    const auto& [variant, drafter] = key;
    const bool computes = drafter == "model" || drafter == "remote";
    if (computes && costs.draft.token_seconds == 0) continue;  // how dear it is, is not known
    add(fmt::format("{} of '{}'", drafter, variant), computes ? costs.draft.token_seconds : 0, AcceptanceOf(steps),
        steps);
  }
  std::vector<double> assumed(std::begin(kShownAcceptance), std::end(kShownAcceptance));
  if (options.acceptance >= 0) assumed = {options.acceptance};
  if (!recorded.empty() && options.acceptance < 0) assumed.clear();
  for (const double acceptance : assumed) {
    add("looked up (suffix, n-grams)", 0, acceptance, {});
    if (costs.draft.token_seconds > 0) add("draft model", costs.draft.token_seconds, acceptance, {});
  }
  return candidates;
}

}  // namespace

void AddPlanFlags(Flags& flags, PlanOptions& o) {
  flags.Group("Plan");
  flags.Add("-m,--model", o.models, "GGUF file of the model that answers; several, comma-separated, are compared")
      ->delimiter(',');
  flags.Add("-md,--model-draft", o.draft, "GGUF file of a draft model");
  flags.Add("--acceptance", o.acceptance, "how often a drafted token is right, 0 to 1; default: a table of several")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--from", o.from, "results.jsonl of outrider bench: drafts as they were right there, runs and all");
  flags.Add("--rtt", o.round_trip_ms, "round trip to a draft server, in milliseconds")->check(CLI::Range(0.0, 1e5));
  flags.Add("--remote", o.remote, "host:port of a draft server (or anything that listens), to measure it");
  flags.Add("-t,--threads", o.threads, "threads; 0 = one per physical core")->check(CLI::Range(0, 4096));
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.gpu_layers, "layers kept on the devices; -1 = all that fit")
      ->check(CLI::Range(-1, 1 << 20));
}

Status Plan(const PlanOptions& options) {
  SetLogLevel(LogLevel::kWarning);
  if (options.models.empty()) return InvalidArgument("which model? -m FILE.gguf");
  Recorded recorded;
  if (!options.from.empty()) {
    const auto text = ReadFile(options.from);
    if (!text) return InvalidArgument("cannot read " + options.from);
    const auto records = ParseRecords(*text);
    if (!records.ok()) return InvalidArgument(options.from + ", " + records.status().message());
    recorded = StepsByDrafter(*records);
    if (recorded.empty()) return InvalidArgument(options.from + " has no drafts in it");
  }
  double round_trip = options.round_trip_ms < 0 ? -1 : options.round_trip_ms / 1000;
  if (!options.remote.empty()) {
    const auto measured = RoundTripSeconds(options.remote);
    if (!measured.ok()) return measured.status();
    round_trip = *measured;
    fmt::print("{} is {:.2f} ms away\n\n", options.remote, round_trip * 1000);
  }
  if (Status status = InitBackend(""); !status.ok()) return status;

  std::string comparison;
  for (const std::string& path : options.models) {
    fmt::print(stderr, "measuring {} …\n", std::filesystem::path(path).filename().string());
    const auto costs = MeasureCosts(path, options.draft, options.threads, options.gpu_layers);
    if (!costs.ok()) return costs.status();
    const double step = costs->curve.Seconds(1, 0);
    fmt::print("{}: {:.1f} tokens a second without drafts\n", std::filesystem::path(path).filename().string(),
               1 / step);
    PrintCurve(costs->curve);
    if (costs->draft.token_seconds > 0) {
      fmt::print("  a drafted token takes {:.2f} ms, {:.3f} of a step\n\n", costs->draft.token_seconds * 1000,
                 costs->draft.token_seconds / step);
    }
    const std::vector<Candidate> candidates = Candidates(options, *costs, round_trip, recorded);
    const double fastest = PrintCandidates(costs->curve, candidates);
    comparison +=
        fmt::format("  {:<40} {:>8.1f} {:>12.2f} {:>14.1f}\n", std::filesystem::path(path).filename().string(),
                    1 / step, costs->curve.Seconds(4, 0) / step, fastest);
    if (costs->draft.token_seconds > 0) {
      double acceptance = options.acceptance >= 0 ? options.acceptance : 0.7;
      for (const auto& [key, steps] : recorded) {
        if (options.acceptance < 0 && key.second == "model") acceptance = AcceptanceOf(steps);
      }
      const double longest = LongestRoundTrip(costs->curve, costs->draft.token_seconds, acceptance);
      if (longest > 0) {
        fmt::print("  On another machine, right {:.0f} % of the time, it pays up to a round trip of {:.0f} ms.\n\n",
                   acceptance * 100, longest * 1000);
      } else {
        fmt::print("  On another machine, right {:.0f} % of the time, it would not pay at any distance.\n\n",
                   acceptance * 100);
      }
    }
  }
  if (options.models.size() > 1) {
    fmt::print("  {:<40} {:>8} {:>12} {:>14}\n{}", "side by side", "t/s", "4 rows cost", "t/s with drafts", comparison);
  }
  return {};
}

}  // namespace outrider
