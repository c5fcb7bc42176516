// ConnectionLoop: accepts connections and reads requests in one thread, and hands each request to a worker thread only
// when it is complete. A client that sends slowly, or nothing, therefore holds a socket and the bytes that it has sent,
// but no thread. Afterwards a connection that is kept alive comes back to the loop.
//
// What a sender can hold is limited (ConnectionLimits): the time for a head and for a body in all, the time without a
// byte, connections in all and per peer, and bytes in all. Where a limit on connections or bytes is reached, the loop
// drops the connection that has been sending its request for longest, or waits idle, in favour of the new one; so slow
// senders displace each other and never those that send at once. If all connections are being answered, the new one
// gets 503 with Retry-After.
//
// Two pools of workers answer: requests for which `is_probe` says yes (health, metrics) have threads of their own, so
// that they are answered whatever the others do.
//
// Threads: Run occupies the calling thread until Stop, which any thread may call, also before Run. The handlers
// wants_body, is_probe and refused are called in the loop's thread and must be quick; answer is called in worker
// threads. The listening socket remains the caller's.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "http/peer.h"
#include "http/request_reader.h"
#include "http/tls.h"
#include "http/wire.h"
#include "http/worker_pool.h"

namespace outrider {

struct ConnectionLimits {
  Duration idle = std::chrono::seconds(5);  // without a request
  // A new connection may wait this long for its first byte before it can be dropped for another one.
  Duration grace = std::chrono::seconds(1);
  Duration head = std::chrono::seconds(10);     // for the whole head, from its first byte
  Duration body = std::chrono::seconds(60);     // for the whole body
  Duration silence = std::chrono::seconds(60);  // within a body, without a byte
  int connections = 1024;
  int connections_per_peer = 256;  // of one IPv4 address or one IPv6 network (/64)
  int requests_per_connection = 1000;
  size_t buffered_bytes = 256 << 20;  // of all requests that are being read, wait for a worker or are being answered
  RequestLimits request;
  int workers = 64;
  int probe_workers = 4;
};

// A complete request, for the worker that answers it.
struct Exchange {
  Wire& wire;
  const RequestReader& request;
  const Peer& peer;
  bool close;  // the answer must say that the connection ends
  bool probe;  // is_probe
};

struct ConnectionHandlers {
  // Whether the request can be answered with anything but a refusal; if not, its body is not read.
  std::function<bool(const RequestHead&)> wants_body;
  std::function<bool(const RequestHead&)> is_probe;
  // The body (JSON) of an answer that the loop gives itself, because of a limit. `head` may be incomplete.
  std::function<std::string(const RequestHead& head, const Peer& peer, int http_status, const Status& why)> refused;
  // Answers; returns whether the connection may be used for another request.
  std::function<bool(const Exchange&)> answer;
};

class ConnectionLoop {
 public:
  // `tls`: null = connections are not encrypted.
  ConnectionLoop(const ConnectionLimits& limits, ConnectionHandlers handlers, std::shared_ptr<const Tls> tls = nullptr);
  ~ConnectionLoop();

  // `listening_socket` must be bound and listening. Returns after Stop, when all connections are closed.
  void Run(int listening_socket);

  // Accepts nothing more and drops those who have not sent a whole request. Answers that are under way have `max_wait`;
  // then their connections are shut down, and what answers them is expected to notice that. Returns at once.
  void Stop(Duration max_wait);

 private:
  struct Connection;
  using Connections = std::list<std::unique_ptr<Connection>>;

  void Accept(int listening_socket);
  void Add(std::unique_ptr<Wire> wire, Peer peer);
  bool MakeRoom(const std::string* group);
  void Read(Connection& connection);
  void Feed(Connection& connection, std::string_view bytes);
  void BeginBody(Connection& connection, bool more_is_here);
  void Count(Connection& connection);
  void KeepWithinBuffer();
  void Dispatch(Connection& connection);
  void TakeBack();
  void Refuse(Connection& connection, int http_status, const Status& why);
  void BeginClosing(Connection& connection);
  void Close(Connection& connection);
  TimePoint DeadlineOf(const Connection& connection) const;
  void EndOverdue(Connection& connection, TimePoint now);
  void Wake();

  const ConnectionLimits limits_;
  const ConnectionHandlers handlers_;
  const std::shared_ptr<const Tls> tls_;
  int wake_[2] = {-1, -1};  // a pipe: workers and Stop write, the loop reads

  // Used only by the loop's thread.
  Connections connections_;
  std::map<std::string, int> per_peer_;
  int open_ = 0;
  int answering_ = 0;
  size_t buffered_bytes_ = 0;
  TimePoint accept_again_{};  // after the machine ran out of sockets

  std::mutex mutex_;
  std::vector<std::pair<Connection*, bool>> answered_;  // guarded by mutex_: and whether it is kept
  bool stopping_ = false;                               // guarded by mutex_
  TimePoint stop_deadline_{};                           // guarded by mutex_

  WorkerPool workers_;
  WorkerPool probe_workers_;
};

}  // namespace outrider
