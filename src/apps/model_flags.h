// The flags that say what is loaded and how it computes: the model, its context, speculation, the draft model.
#pragma once

#include "apps/flags.h"
#include "apps/serve_options.h"

namespace outrider {

void AddModelFlags(Flags& flags, ServeOptions& options);
void AddContextFlags(Flags& flags, ServeOptions& options);
void AddSpeculationFlags(Flags& flags, ServeOptions& options);
void AddDraftModelFlags(Flags& flags, ServeOptions& options);

}  // namespace outrider
