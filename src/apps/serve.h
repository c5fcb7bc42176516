// `outrider serve`: puts the house together, opens the door, and closes it in order.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Runs until SIGINT or SIGTERM. Everything that can fail does so before the port is opened.
Status Serve(ServeOptions options);

}  // namespace outrider
