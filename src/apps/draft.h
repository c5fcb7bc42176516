// `outrider draft`: serves a draft model to Outriders on other machines (--spec remote:…).
#pragma once

#include <string>

#include "apps/flags.h"
#include "base/status.h"
#include "engine/model_options.h"
#include "remote/draft_server.h"

namespace outrider {

struct DraftOptions {
  ModelOptions model;
  ContextOptions context;
  DraftServerOptions server;
  std::string metrics;  // "host:port" for GET /metrics; "" = none
  bool verbose = false;
};

void AddDraftFlags(Flags& flags, DraftOptions& options);

// Until a signal comes.
Status ServeDrafts(DraftOptions options);

}  // namespace outrider
