// Recorded worlds: each is a recorded workload on a recorded machine, as a catalogue lists them:
//
//   [{"name": …, "workload": file, "machine": file, "slots": 4, "drafters": ["suffix", …]}, …]
//
// Files are relative to the catalogue. The same answers can be replayed over many machines, because what drafters say
// depends on the text only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "worlds/machine_record.h"
#include "worlds/workload.h"
#include "worlds/world.h"

namespace outrider {

class RecordedWorlds {
 public:
  // Reads the catalogue `path` and the files that it names; an error says which file is wrong.
  static Result<RecordedWorlds> Load(const std::string& path);

  // They refer to this object.
  const std::vector<World>& worlds() const { return worlds_; }

 private:
  std::map<std::string, std::unique_ptr<const Workload>> workloads_;  // by file
  std::vector<World> worlds_;
};

}  // namespace outrider
