#include "http/guarded_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>

#include "http/entry.h"
#include "http/exchange_stream.h"
#include "http/listening_socket.h"

namespace outrider {
namespace {

// An answer to a probe fits into the socket's buffer of any client that reads; one that does not must not hold a
// worker.
constexpr std::chrono::milliseconds kProbePatience{50};
constexpr int kBacklog = 1024;

}  // namespace

GuardedServer::GuardedServer(const ConnectionLimits& limits, Duration write_patience, Hooks hooks,
                             std::shared_ptr<const Tls> tls, std::string path_prefix)
    : write_patience_(write_patience),
      hooks_(std::move(hooks)),
      path_prefix_(std::move(path_prefix)),
      loop_(limits,
            {.wants_body = hooks_.wants_body,
             .is_probe =
                 [this](const RequestHead& head) { return IsProbePath(WithoutPrefix(head.path(), path_prefix_)); },
             .refused = [this](const RequestHead& head, const Peer& peer, int http_status,
                               const Status& why) { return Refused(head, peer, http_status, why); },
             .answer = [this](const Exchange& exchange) { return Answer(exchange); }},
            std::move(tls)) {
  set_payload_max_length(limits.request.max_body_bytes);
  set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(limits.idle).count());
  set_keep_alive_max_count(static_cast<size_t>(limits.requests_per_connection));
  set_socket_options(SetListenOptions);
}

GuardedServer::~GuardedServer() {
  stop();
}

Status GuardedServer::Listen(const std::string& host, int port) {
  port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (port_ <= 0) {
    port_ = 0;
    return InvalidArgument(
        fmt::format("cannot listen on {}:{}: the port is in use or the address is not this machine's", host, port));
  }
  ::listen(svr_sock_, kBacklog);  // a longer queue than httplib asks for
  return {};
}

void GuardedServer::Serve() {
  loop_.Run(svr_sock_);
  stop();
}

bool GuardedServer::Answer(const Exchange& exchange) {
  const TimePoint start = Clock::Real().Now();
  ExchangeStream stream(exchange, exchange.probe ? kProbePatience : write_patience_);
  bool closed = false;
  const bool ok = serve_guarded([&] {
    return process_request(stream, exchange.peer.address, exchange.peer.port, "", 0, exchange.close, closed,
                           [this](httplib::Request& request) {
                             request.headers.erase("Expect");  // the loop has told the client to go on, if it asked
                             request.path = std::string(WithoutPrefix(request.path, path_prefix_));
                           });
  });
  hooks_.answered(
      {exchange.request.head(), exchange.peer, stream.status(), stream.bytes_written(), Clock::Real().Now() - start});
  // httplib announces with every error that it closes the connection.
  return ok && !closed && stream.all_was_read() && stream.status() < 400;
}

std::string GuardedServer::Refused(const RequestHead& head, const Peer& peer, int http_status,
                                   const Status& why) const {
  hooks_.answered({head, peer, http_status, 0, Duration::zero()});
  return hooks_.error_body(head, why);
}

}  // namespace outrider
