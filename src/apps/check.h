// `outrider check`: proves on this machine, with this model and these flags, that logits do not depend on the batch and
// that speculation never changes a text; says what does not hold, and which flag helps.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Prints a table to standard output. Sets *kept to whether every promise held; an error is only what kept it from
// finding out.
Status Check(ServeOptions options, bool* kept);

}  // namespace outrider
