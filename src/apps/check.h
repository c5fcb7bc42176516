// `outrider check`: proves on this machine, with this model and these flags, that logits do not depend on the batch and
// that speculation never changes a text; says what does not hold, and which flag helps.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Prints a table to standard output. Sets *exact to whether everything was exact; an error says why that could not be
// found out.
Status Check(ServeOptions options, bool* exact);

}  // namespace outrider
