// The limits of a server as its options have them.
#pragma once

#include "http/connection_loop.h"
#include "http/server.h"

namespace outrider {

// How many requests may generate at once; each has a thread.
int GenerationLimit(const HttpOptions& options);

ConnectionLimits LimitsOf(const HttpOptions& options);

}  // namespace outrider
