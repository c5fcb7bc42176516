// GrpcNetwork: draft servers reached over gRPC.
//
// Each server has a connection that heals itself and is health-checked. A sequence is sent to a server that is well, to
// the one with the fewest of ours; one that failed is left alone for a while, longer each time, with jitter. Changes
// are logged once.
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
