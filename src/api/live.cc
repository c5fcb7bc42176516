#include "api/live.h"

#include <unistd.h>

#include <cmath>
#include <fstream>

namespace outrider {
namespace {

// A microsecond is precise enough, and short.
double Rounded(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

}  // namespace

MemoryUse ReadMemoryUse() {
  uint64_t pages = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages >> resident)) return {};
  return {resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

Json LiveJson(const LiveState& state, const Viewer& viewer, const ApiContext& context, const ServerInfo& info) {
  const StepCosts& costs = state.costs;
  Json curve = Json::array();
  for (const StepCost& cost : costs.curve) {
    curve.push_back({cost.rows, Rounded(cost.seconds), std::round(cost.spread * 1e4) / 1e4});
  }
  Json servers = Json::array();
  for (const DraftServerState& server : state.draft_servers) {
    servers.push_back({{"address", server.address},
                       {"usable", server.usable},
                       {"streams", server.streams},
                       {"answer_seconds", Rounded(server.answer_seconds)}});
  }
  return {{"metrics", MetricsText(state.stats)},
          {"slots", SlotsJson(state.slots, viewer, context)},
          {"costs", {{"context", costs.context}, {"last_rows", costs.last_rows}, {"curve", std::move(curve)}}},
          {"draft_servers", std::move(servers)},
          {"memory", {{"resident", state.memory.resident_bytes}, {"model", info.model_bytes}}}};
}

}  // namespace outrider
