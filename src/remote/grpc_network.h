// GrpcNetwork: draft servers reached over gRPC.
//
// Each server has a connection that is health-checked and reconnects by itself. A stream is opened to the healthy
// server that has the fewest of our streams. A server that failed is not used for a while, longer each time, with
// jitter. A change of state is logged once.
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
