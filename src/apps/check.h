// `outrider check`: tests on this machine, with this model and these flags, whether logits depend on the batch and
// whether speculation changes a text; says where they differ, and which flag helps.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Prints a table to standard output. Sets *exact to whether everything was exact; an error says why that could not be
// found out.
Status Check(ServeOptions options, bool* exact);

}  // namespace outrider
