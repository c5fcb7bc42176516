// Models that flags name by a repository or an address.
#pragma once

#include "apps/serve_options.h"
#include "base/status.h"

namespace outrider {

// Downloads them and puts their files into the options' paths; nothing happens if all models are files already.
Status FetchModels(ServeOptions& options);

}  // namespace outrider
