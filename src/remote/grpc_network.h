// GrpcNetwork: draft servers reached over gRPC.
//
// Each server has a connection that is health-checked and reconnects by itself. A stream is opened to the healthy
// server that has the fewest of our streams. A failed server is paused for 0.2 s, twice as long after each failure, up
// to 30 s; the pause is reset when it sends tokens. Each pause is shortened at random, to half of this time at the
// least, so that several clients do not come back at once. A change of state is logged once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "remote/credentials.h"
#include "remote/draft_network.h"

namespace outrider {

struct GrpcNetworkOptions {
  std::vector<std::string> servers;  // "host:port"
  ClientCredentials credentials;
};

// Checks addresses and certificates; connecting happens later, in the background.
Result<std::unique_ptr<DraftNetwork>> MakeGrpcNetwork(const GrpcNetworkOptions& options);

}  // namespace outrider
