// What the dashboard shows, as one JSON object. The counters are those of /metrics, as the same text, so that the two
// can never tell different numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "api/info.h"
#include "scheduler/step_costs.h"
#include "spec/draft_server_state.h"

namespace outrider {

struct MemoryUse {
  uint64_t resident_bytes = 0;  // of this process; 0 if the system does not tell
};

MemoryUse ReadMemoryUse();

struct LiveState {
  SchedulerStats stats;
  std::vector<SlotStatus> slots;
  StepCosts costs;
  std::vector<DraftServerState> draft_servers;
  MemoryUse memory;
};

// {"metrics": "…", "slots": […], "costs": {…}, "draft_servers": […], "memory": {…}}
Json LiveJson(const LiveState& state, const Viewer& viewer, const ApiContext& context, const ServerInfo& info);

}  // namespace outrider
