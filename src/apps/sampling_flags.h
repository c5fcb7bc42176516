// The flags for what requests may say themselves: sampling, stop strings, the format of answers.
#pragma once

#include "apps/flags.h"
#include "apps/serve_options.h"

namespace outrider {

void AddSamplingFlags(Flags& flags, ServeOptions& options);

}  // namespace outrider
