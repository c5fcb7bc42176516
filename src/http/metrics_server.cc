#include "http/metrics_server.h"

#include <fmt/format.h>

#include <thread>

#include "base/address.h"
#include "base/json.h"
#include "base/metrics_writer.h"
#include "http/entry.h"
#include "http/guarded_server.h"

namespace outrider {
namespace {

// Nobody has to send more than a short GET, or needs many connections.
ConnectionLimits SmallLimits() {
  ConnectionLimits limits;
  limits.connections = 128;
  limits.connections_per_peer = 64;
  limits.buffered_bytes = 4 << 20;
  limits.request = {.max_head_bytes = 16 << 10, .max_body_bytes = 1 << 10};
  limits.workers = 2;
  limits.probe_workers = 2;
  return limits;
}

std::string ErrorBody(const RequestHead&, const Status& why) {
  return DumpJson({{"error", {{"message", why.message()}}}}) + "\n";
}

}  // namespace

struct MetricsServer::Impl {
  GuardedServer server{SmallLimits(), std::chrono::seconds(5), {.error_body = ErrorBody}};
  std::thread thread;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                            std::function<std::string()> metrics) {
  const auto address = ParseAddress(listen);
  if (!address.ok()) return address.status();
  auto impl = std::make_unique<Impl>();
  impl->server.Get(kMetricsPath, [metrics = std::move(metrics)](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics(), kMetricsContentType);
  });
  impl->server.Get(kHealthPaths.front(), [](const httplib::Request&, httplib::Response& response) {
    response.set_content(R"({"status":"ok"})", "application/json");
  });
  if (Status status = impl->server.Listen(address->host, address->port); !status.ok()) return status;
  impl->thread = std::thread([server = &impl->server] { server->Serve(); });
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsServer::~MetricsServer() {
  impl_->server.Stop(std::chrono::seconds(1));
  impl_->thread.join();
}

int MetricsServer::port() const {
  return impl_->server.port();
}

}  // namespace outrider
