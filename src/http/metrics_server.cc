#include "http/metrics_server.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/address.h"
#include "base/metrics_writer.h"
#include "http/listening_socket.h"

namespace outrider {

struct MetricsServer::Impl {
  httplib::Server server;
  std::thread thread;
  int port = 0;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                            std::function<std::string()> metrics) {
  const auto address = ParseAddress(listen);
  if (!address.ok()) return address.status();
  auto impl = std::make_unique<Impl>();
  impl->server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  impl->server.set_socket_options(SetListenOptions);
  impl->server.Get("/metrics", [metrics = std::move(metrics)](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics(), kMetricsContentType);
  });
  impl->server.Get("/health", [](const httplib::Request&, httplib::Response& response) {
    response.set_content(R"({"status":"ok"})", "application/json");
  });
  impl->port = address->port;
  if (impl->port == 0) impl->port = std::max(0, impl->server.bind_to_any_port(address->host));
  if (impl->port == 0 || (address->port > 0 && !impl->server.bind_to_port(address->host, address->port))) {
    return InvalidArgument(
        fmt::format("cannot listen on {}: the port is in use or the address is not this machine's", listen));
  }
  impl->thread = std::thread([server = &impl->server] { server->listen_after_bind(); });
  impl->server.wait_until_ready();
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsServer::~MetricsServer() {
  impl_->server.stop();
  impl_->thread.join();
}

int MetricsServer::port() const {
  return impl_->port;
}

}  // namespace outrider
