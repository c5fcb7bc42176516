// DraftServer: serves drafts of a draft model to other machines, over gRPC (draft.proto), with health checks.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "remote/credentials.h"
#include "remote/draft_worker.h"

namespace outrider {

struct DraftServerOptions {
  std::string listen = "127.0.0.1:8090";  // "host:port"; port 0 = any free one
  ServerCredentials credentials;
  DraftBatcherOptions batcher;
};

class DraftServer {
 public:
  // The model outlives the server.
  static Result<std::unique_ptr<DraftServer>> Start(const DraftModel& model, const DraftServerOptions& options);

  // Closes all streams.
  virtual ~DraftServer() = default;

  virtual int port() const = 0;
  virtual DraftStats stats() const = 0;
};

}  // namespace outrider
