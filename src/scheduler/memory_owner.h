// For whom memory is kept: what slots and drafters keep of a request is for requests of the same client with the same
// adapters, and for no others. So to them a client with other adapters is another owner.
#pragma once

#include <string>

#include "base/adapter_set.h"

namespace outrider {

inline std::string MemoryOwner(const std::string& client, const AdapterSet& adapters) {
  // The separator cannot be in a client's name, which is printable.
  return adapters.empty() ? client : client + '\n' + Describe(adapters);
}

}  // namespace outrider
