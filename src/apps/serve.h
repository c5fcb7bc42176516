// `outrider serve`: loads the model, serves it over HTTP, and shuts down in order.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Runs until SIGINT or SIGTERM. What can fail at the start fails before the port is opened.
Status Serve(ServeOptions options);

}  // namespace outrider
