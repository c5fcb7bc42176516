// For whom drafters remember texts: for requests of the same client with the same adapters. So to drafters a client
// with other adapters is another owner.
#pragma once

#include <string>

#include "base/adapter_set.h"

namespace outrider {

inline std::string MemoryOwner(const std::string& client, const AdapterSet& adapters) {
  // The separator cannot be in a client's name, which is printable.
  return adapters.empty() ? client : client + '\n' + Describe(adapters);
}

}  // namespace outrider
