// The flags that name adapters (LoRA), as llama-server has them.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"

namespace outrider {

struct AdapterFlags {
  std::vector<std::string> files;         // applied with the scale 1
  std::vector<std::string> scaled_files;  // "FILE:SCALE"
  bool only_load = false;                 // their default scale is 0
};

void AddAdapterFlags(Flags& flags, AdapterFlags& adapters);

// Files and default scales of all adapters, by id: those without a scale first.
struct NamedAdapters {
  std::vector<std::string> paths;
  std::vector<float> scales;
};

Result<NamedAdapters> NameAdapters(const AdapterFlags& flags);

}  // namespace outrider
