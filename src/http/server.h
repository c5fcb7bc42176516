// HttpServer: routes, limits and keys in front of the API. It knows nothing of models or speculation: a generating
// endpoint parses the body into a ParsedRequest, submits it, and writes chunks as they come; the others return what
// api/info.h says.
//
// Listen() binds, Serve() blocks until Stop(), which any thread may call. Stop() waits up to `max_wait` until running
// answers have been sent to their clients; the scheduler must have ended them. Each connection uses a thread of
// httplib's pool while it lasts: with `max_connections` of them open, a new one waits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/info.h"
#include "api/protocol.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/embedder.h"
#include "http/auth.h"
#include "scheduler/scheduler.h"

namespace outrider {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;          // 0 = any free one
  ApiKeys api_keys;         // none = no key is needed
  std::string cors_origin;  // "" = no CORS headers; "*" = any page may call
  size_t max_body_bytes = 8 << 20;
  int timeout_seconds = 60;  // a peer that neither sends nor receives a byte for this long is disconnected
  int idle_seconds = 5;      // a kept-alive connection without a request is closed after this
  int max_connections = 128;
  bool slots = true;           // serve GET /slots
  bool page = true;            // serve the page for people at /
  std::string slot_save_path;  // directory for /slots?action=save; "" = saving is refused
};

// What the endpoints work on. Everything outlives the server; `embedder` may be null.
struct Services {
  const ApiContext& api;
  const ServerInfo& info;
  Scheduler& scheduler;
  Embedder* embedder;
};

class HttpServer {
 public:
  HttpServer(HttpOptions options, Services services);
  ~HttpServer();

  Status Listen();
  int port() const;
  void Serve();
  void Stop(Duration max_wait);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
