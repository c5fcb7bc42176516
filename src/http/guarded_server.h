// GuardedServer: httplib's routing, parsing and answering behind a ConnectionLoop, which reads the requests. Routes and
// handlers are httplib's; its own accepting, thread pool and reading from sockets are not used.
//
// Listen() binds, Serve() blocks until Stop(), which any thread may call, also before Serve(). Handlers are called in
// worker threads. What is written about a request after it was answered (an audit line, say) is up to `answered`.
#pragma once

#include <cpp-httplib/httplib.h>

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "http/connection_loop.h"

namespace outrider {

// How a request ended.
struct AnsweredRequest {
  const RequestHead& head;  // empty if the head did not come in whole
  const Peer& peer;
  int http_status;  // 0 = the client went away before the answer
  size_t bytes_written;
  Duration duration;  // from the complete request to the end of the answer
};

class GuardedServer : private httplib::Server {
 public:
  struct Hooks {
    // Called in the loop's thread for requests with a body: whether it is worth reading. Must be quick.
    std::function<bool(const RequestHead&)> wants_body = [](const RequestHead&) { return true; };
    // The JSON of an error that a limit of the loop caused.
    std::function<std::string(const RequestHead&, const Status&)> error_body;
    std::function<void(const AnsweredRequest&)> answered = [](const AnsweredRequest&) {};
  };

  // `write_patience`: see ExchangeStream. Probes (IsProbePath, http/entry.h) are answered by workers of their own.
  // `tls`: null = not encrypted. `path_prefix`: stands before the path of each route; a handler gets the path without
  // it, and the hooks get the request as it came.
  GuardedServer(const ConnectionLimits& limits, Duration write_patience, Hooks hooks,
                std::shared_ptr<const Tls> tls = nullptr, std::string path_prefix = "");
  ~GuardedServer() override;

  // Of httplib: routes, and the handlers around them.
  using httplib::Server::Delete;
  using httplib::Server::Get;
  using httplib::Server::Handler;
  using httplib::Server::HandlerResponse;
  using httplib::Server::Post;
  using httplib::Server::set_error_handler;
  using httplib::Server::set_exception_handler;
  using httplib::Server::set_pre_routing_handler;

  // `port` 0 = any free one.
  Status Listen(const std::string& host, int port);
  int port() const { return port_; }
  void Serve();
  void Stop(Duration max_wait) { loop_.Stop(max_wait); }

 private:
  bool Answer(const Exchange& exchange);
  std::string Refused(const RequestHead& head, const Peer& peer, int http_status, const Status& why) const;

  const Duration write_patience_;
  const Hooks hooks_;
  const std::string path_prefix_;
  int port_ = 0;
  ConnectionLoop loop_;
};

}  // namespace outrider
