#include "apps/round_trip.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/free_with.h"

namespace outrider {
namespace {

constexpr int kTries = 5;
constexpr timeval kConnectTimeout = {2, 0};

std::optional<double> ConnectSeconds(const addrinfo& to) {
  const File connection(socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC, to.ai_protocol));
  setsockopt(connection.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &kConnectTimeout, sizeof kConnectTimeout);
  const TimePoint start = Clock::Real().Now();
  if (connect(connection.descriptor(), to.ai_addr, to.ai_addrlen) != 0) return std::nullopt;
  return Milliseconds(Clock::Real().Now() - start) / 1000;
}

}  // namespace

Result<double> MeasureRoundTripSeconds(const std::string& text) {
  const auto address = ParseAddress(text);
  if (!address.ok()) return address.status();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(address->host.c_str(), std::to_string(address->port).c_str(), &hints, &found) != 0) {
    return Unavailable(fmt::format("cannot find {}", address->host));
  }
  const std::unique_ptr<addrinfo, FreeWith<freeaddrinfo>> owned(found);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    auto shortest = ConnectSeconds(*each);
    if (!shortest) continue;
    for (int i = 1; i < kTries; ++i) {
      const auto seconds = ConnectSeconds(*each);
      if (!seconds) break;
      shortest = std::min(*shortest, *seconds);
    }
    return *shortest;
  }
  return Unavailable(fmt::format("nothing listens on {}", text));
}

}  // namespace outrider
