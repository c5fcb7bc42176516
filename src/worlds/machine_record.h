// MachineRecord: what steps and drafts cost on a machine, measured once and kept as a small JSON file.
//
//   {"name": …, "source": how and when it was measured,
//    "steps": [[rows, context, milliseconds], …], "switch_ms": …, "new_shape_ms": …, "noise": …,
//    "drafters": {"model": {"token_ms": …, "more_token_ms": …, "read_ms": …, "delay_ms": …}},
//    "replays": …, "save_ms": …, "restore_ms": …}
//
// Everything but name and steps may be left out. Between the measured points times are interpolated, past them the
// slope of the last two goes on.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "worlds/world.h"

namespace outrider {

struct MachineRecord {
  struct Step {
    int rows, context;
    double seconds;
  };

  std::string name;
  std::string source;
  std::vector<Step> steps;  // ascending by context, then by rows; the same rows for each context are not required
  WorldMachine costs;       // all but step_seconds
  std::map<std::string, WorldDrafter> drafters;

  // `costs` with times interpolated between `steps`.
  WorldMachine Machine() const;

  // The drafter of that name; one that is not in the record looks things up.
  WorldDrafter Drafter(const std::string& name) const;
};

Result<MachineRecord> ParseMachineRecord(std::string_view text);

}  // namespace outrider
