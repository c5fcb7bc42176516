// HttpServer: routes, limits and keys in front of the API. It knows nothing of models or speculation: a generating
// endpoint parses the body into a ParsedRequest, submits it, and writes chunks as they come; the others return what
// api/info.h says.
//
// Listen() binds, Serve() blocks until Stop(), which any thread may call; it returns at once, and Serve() at the latest
// after `max_wait`, in which running answers are sent to their clients; the scheduler must have ended them. Requests
// are read without a thread (http/connection_loop.h); one that is complete has a thread until it is answered. Threads
// are enough for all generations that may run or wait, with a reserve for everything else; docs/SECURITY.md has all
// limits.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/info.h"
#include "api/live.h"
#include "api/protocol.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/embedder.h"
#include "http/auth.h"
#include "http/slots.h"
#include "http/tls.h"
#include "scheduler/scheduler.h"

namespace outrider {

inline constexpr int kMaxGenerations = 1024;  // each has a thread; HttpServer allows no more, whatever the options say

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                         // 0 = any free one
  ApiKeys api_keys;                        // none = no key is needed
  std::string path_prefix;                 // "/llm": of all paths; "" = none
  std::shared_ptr<const Tls> tls;          // null = not encrypted
  std::vector<std::string> allowed_hosts;  // names of this server in the header Host, beside its address and localhost
  std::vector<std::string> cors_origins;   // pages that may call; "*" = any
  size_t max_body_bytes = 8 << 20;
  size_t max_buffered_bytes = 256 << 20;  // of all requests that are being read, wait or are being answered
  double head_seconds = 10;               // a request's head must have come in this time
  double body_seconds = 60;               // a request's body must have come in this time
  int timeout_seconds = 60;               // a peer that neither sends nor receives a byte for this long is disconnected
  int idle_seconds = 5;                   // a kept-alive connection without a request is closed after this
  int max_connections = 1024;
  int max_connections_per_peer = 256;
  int max_generations = 128;                      // requests that run or wait at once; at most kMaxGenerations
  bool slots = true;                              // serve GET /slots
  bool page = true;                               // serve the page for people at /
  SlotFileOptions slot_files;                     // for /slots?action=save
  JsonLimits json = {.values = size_t{1} << 19};  // of the body of a request: parsed in less than 100 ms
  // Of a request for embeddings, and of computing a request's pictures before it is queued; waiting included.
  Duration max_unqueued_time = Duration::max();
};

// What the endpoints work on. Everything outlives the server; `embedder` and `draft_servers` may be null.
struct Services {
  const ApiContext& api;
  const ServerInfo& info;
  Scheduler& scheduler;
  Embedder* embedder;
  AdapterList* adapters;
  std::function<std::vector<DraftServerState>()> draft_servers = nullptr;  // thread-safe
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
