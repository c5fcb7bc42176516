// Network addresses as people write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

struct Address {
  std::string host;  // without the brackets of "[::1]:8090"
  int port = 0;      // 0 to 65535
};

// "host:8090", "[::1]:8090".
Result<Address> ParseAddress(std::string_view text);

// Whether only this machine reaches the host.
bool IsLoopback(std::string_view host);

// By which names other machines of a network call this one: its host name, and that with ".local" (mDNS).
std::vector<std::string> NamesOfThisMachine();

}  // namespace outrider
