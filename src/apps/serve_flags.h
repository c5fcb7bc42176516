// The flags of `outrider serve`: one line of help for each field of ServeOptions.
#pragma once

#include "apps/flags.h"
#include "apps/serve_options.h"

namespace outrider {

void AddServeFlags(Flags& flags, ServeOptions& options);

}  // namespace outrider
