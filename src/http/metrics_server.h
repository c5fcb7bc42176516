// MetricsServer: GET /metrics and GET /health over HTTP, for a program whose own service is not HTTP (outrider draft).
// Slow senders hold no thread here, either (http/guarded_server.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace outrider {

class MetricsServer {
 public:
  // Answers with the text that `metrics` returns, called for each request in threads of its own, until destroyed.
  // `listen`: "host:port"; port 0 = any free one.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& listen, std::function<std::string()> metrics);
  ~MetricsServer();

  int port() const;

 private:
  struct Impl;
  explicit MetricsServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
