// What files of adapters (LoRA) say, read with ggml's parser before libllama loads them. libllama aborts the process
// where an adapter does not fit its model in some ways, so all that it takes for granted is checked here first.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/status.h"

namespace outrider {

// What an adapter must fit.
struct AdapterTarget {
  std::string architecture;
  std::map<std::string, std::array<int64_t, 4>> weights;  // shapes by names
  std::set<std::string> nvfp4 = {};                       // weights of this type, which has a scale beside each weight
};

// Whether the adapter in `path` fits. kInvalidArgument or kUnsupported say in one sentence why not. OK does not mean
// that libllama can load it: the values of its tensors are not read here.
Status CheckAdapterFile(const std::string& path, const AdapterTarget& target);

}  // namespace outrider
