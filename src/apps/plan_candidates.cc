#include "apps/plan_candidates.h"

#include <fmt/format.h>

namespace outrider {
namespace {

constexpr double kShownAcceptances[] = {0.3, 0.5, 0.6, 0.7, 0.8, 0.9};
constexpr double kDefaultAcceptance = 0.7;

}  // namespace

std::vector<PlanCandidate> ListCandidates(const PlanAssumptions& assumptions) {
  std::vector<PlanCandidate> candidates;
  const double round_trip = assumptions.round_trip_seconds;
  const auto add = [&](const std::string& name, double token_seconds, double acceptance,
                       const std::vector<TakenStep>& steps) {
    candidates.push_back({name, {token_seconds}, acceptance, steps});
    if (token_seconds == 0 || round_trip < 0) return;
    const std::string there = fmt::format("{}, {:.0f} ms away", name, round_trip * 1000);
    candidates.push_back({there, {token_seconds, /*remote=*/true, round_trip}, acceptance, steps});
  };
  const double draft_seconds = assumptions.draft_token_seconds;
  for (const auto& [key, steps] : assumptions.recorded) {
    const auto& [variant, drafter] = key;
    const bool computes = drafter == "model" || drafter == "remote";
    if (computes && draft_seconds == 0) continue;  // what its tokens cost is not known
    add(fmt::format("{} of '{}'", drafter, variant), computes ? draft_seconds : 0, AcceptanceOf(steps), steps);
  }
  std::vector<double> assumed;
  if (assumptions.acceptance >= 0) {
    assumed = {assumptions.acceptance};
  } else if (assumptions.recorded.empty()) {
    assumed.assign(std::begin(kShownAcceptances), std::end(kShownAcceptances));
  }
  for (const double acceptance : assumed) {
    add("looked up (suffix, n-grams)", 0, acceptance, {});
    if (draft_seconds > 0) add("draft model", draft_seconds, acceptance, {});
  }
  return candidates;
}

double RemoteAcceptance(const PlanAssumptions& assumptions) {
  if (assumptions.acceptance >= 0) return assumptions.acceptance;
  double acceptance = kDefaultAcceptance;
  for (const auto& [key, steps] : assumptions.recorded) {
    if (key.second == "model") acceptance = AcceptanceOf(steps);
  }
  return acceptance;
}

}  // namespace outrider
