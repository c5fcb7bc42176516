#include "http/connection_loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/log.h"

namespace outrider {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kAcceptsAtOnce = 64;
// A connection that is closed after an error may still be sending: what comes is read and dropped for a while, because
// closing with unread bytes would reset the connection before the client has read the answer.
constexpr std::chrono::seconds kLinger{2};
constexpr std::chrono::milliseconds kAcceptPause{100};

// The machine's clock, as poll waits by it, too.
TimePoint Now() {
  return Clock::Real().Now();
}

void SetNonBlocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

const char* ReasonPhrase(int http_status) {
  switch (http_status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 413:
      return "Payload Too Large";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string ErrorAnswer(int http_status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      http_status, ReasonPhrase(http_status), body.size(), http_status == 503 ? "Retry-After: 1\r\n" : "", body);
}

}  // namespace

struct ConnectionLoop::Connection {
  enum class Phase { kReading, kAnswering, kClosing, kClosed };

  Connection(std::unique_ptr<Wire> accepted, Peer from, const RequestLimits& limits, TimePoint now)
      : wire(std::move(accepted)),
        peer(std::move(from)),
        reader(std::make_unique<RequestReader>(limits)),
        since(now),
        last_byte(now) {}

  bool IsRead() const { return phase == Phase::kReading || phase == Phase::kClosing; }  // by the loop

  std::unique_ptr<Wire> wire;  // null when it is closed
  const Peer peer;
  Phase phase = Phase::kReading;
  std::unique_ptr<RequestReader> reader;
  std::string next;          // what came after the request that is being answered
  size_t counted_bytes = 0;  // its part of buffered_bytes_
  int requests = 0;
  TimePoint since;  // when the phase began; while reading: waiting idle, the head, or the body
  TimePoint last_byte;
};

ConnectionLoop::ConnectionLoop(const ConnectionLimits& limits, ConnectionHandlers handlers,
                               std::shared_ptr<const Tls> tls)
    : limits_(limits),
      handlers_(std::move(handlers)),
      tls_(std::move(tls)),
      workers_(limits.workers),
      probe_workers_(limits.probe_workers) {
  if (pipe(wake_) != 0) {
    LogError("no pipe for the server's loop: {}", std::strerror(errno));
    return;
  }
  for (const int fd : wake_) SetNonBlocking(fd);
}

ConnectionLoop::~ConnectionLoop() {
  for (const int fd : wake_) {
    if (fd >= 0) close(fd);
  }
}

void ConnectionLoop::Wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(wake_[1], &byte, 1);  // a full pipe wakes just as well
}

void ConnectionLoop::Stop(Duration max_wait) {
  const std::lock_guard lock(mutex_);
  const TimePoint deadline = Later(Now(), max_wait);
  stop_deadline_ = stopping_ ? std::min(stop_deadline_, deadline) : deadline;
  stopping_ = true;
  Wake();
}

void ConnectionLoop::Run(int listening_socket) {
  SetNonBlocking(listening_socket);
  std::vector<pollfd> polled;
  std::vector<Connection*> of_polled;
  while (true) {
    TakeBack();
    const TimePoint now = Now();
    TimePoint next = TimePoint::max();
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
      if (stopping) next = stop_deadline_;
      if (stopping && (answering_ == 0 || now >= stop_deadline_)) break;
    }
    // On Linux this ends listening; the number of the socket stays taken until its owner closes it.
    if (stopping) shutdown(listening_socket, SHUT_RDWR);

    const bool accepting = !stopping && now >= accept_again_;
    if (!stopping && !accepting) next = std::min(next, accept_again_);
    polled.assign({{wake_[0], POLLIN, 0}, {accepting ? listening_socket : -1, POLLIN, 0}});
    of_polled.assign(2, nullptr);
    for (const auto& connection : connections_) {
      if (!connection->IsRead()) continue;
      if (stopping && connection->phase == Connection::Phase::kReading) Close(*connection);
      if (connection->IsRead()) EndOverdue(*connection, now);
      if (!connection->IsRead()) continue;
      next = std::min(next, DeadlineOf(*connection));
      polled.push_back({connection->wire->socket(), connection->wire->awaited(), 0});
      of_polled.push_back(connection.get());
    }
    connections_.remove_if([](const auto& c) { return c->phase == Connection::Phase::kClosed; });

    int timeout_ms = -1;
    if (next != TimePoint::max()) {
      const double ms = std::clamp(Milliseconds(next - now), 0.0, 1e6);
      timeout_ms = static_cast<int>(ms) + 1;
    }
    if (poll(polled.data(), polled.size(), timeout_ms) < 0) continue;  // EINTR
    char wakes[256];
    while (polled[0].revents != 0 && read(wake_[0], wakes, sizeof wakes) > 0) {
    }
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      try {
        Read(*of_polled[i]);
      } catch (const std::bad_alloc&) {  // costs this connection, not the server
        Close(*of_polled[i]);
      }
    }
    if (polled[1].revents != 0) Accept(listening_socket);
  }

  for (const auto& connection : connections_) {
    if (connection->phase == Connection::Phase::kAnswering) shutdown(connection->wire->socket(), SHUT_RDWR);
  }
  workers_.Join();
  probe_workers_.Join();
  for (const auto& connection : connections_) Close(*connection);
  connections_.clear();
}

void ConnectionLoop::Accept(int listening_socket) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const int socket = accept(listening_socket, reinterpret_cast<sockaddr*>(&from), &length);
    if (socket < 0) {
      const bool none_left = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (none_left && !MakeRoom(nullptr)) accept_again_ = Now() + kAcceptPause;
      return;
    }
    SetNonBlocking(socket);
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    try {
      if (auto wire = tls_ ? tls_->Accept(socket) : std::make_unique<Wire>(socket)) Add(std::move(wire), PeerOf(from));
    } catch (const std::bad_alloc&) {  // costs this connection, not the server
    }
  }
}

void ConnectionLoop::Add(std::unique_ptr<Wire> wire, Peer peer) {
  const auto mine = per_peer_.find(peer.group);
  const char* limit = nullptr;
  if (mine != per_peer_.end() && mine->second >= limits_.connections_per_peer && !MakeRoom(&peer.group)) {
    limit = "there are too many connections from your address (--max-connections-per-peer)";
  }
  if (limit == nullptr && open_ >= limits_.connections && !MakeRoom(nullptr)) {
    limit = "the server has too many connections (--max-connections)";
  }
  if (limit != nullptr) {
    wire->Write(ErrorAnswer(503, handlers_.refused({}, peer, 503, Unavailable(limit))));
    return wire->EndWriting();
  }
  connections_.push_back(std::make_unique<Connection>(std::move(wire), std::move(peer), limits_.request, Now()));
  ++per_peer_[connections_.back()->peer.group];
  ++open_;
}

// Drops the connection whose loss costs least, of one group of peers or of all; false if every one is being answered.
bool ConnectionLoop::MakeRoom(const std::string* group) {
  const TimePoint now = Now();
  const auto worth = [&](const Connection& c) {
    const bool idle = !c.reader->began() && now - c.since >= limits_.grace;
    return c.phase == Connection::Phase::kClosing ? 0 : idle ? 1 : 2;
  };
  Connection* least = nullptr;
  for (const auto& connection : connections_) {
    if (!connection->IsRead() || (group != nullptr && connection->peer.group != *group)) continue;
    if (least == nullptr || std::pair(worth(*connection), connection->since) < std::pair(worth(*least), least->since)) {
      least = connection.get();
    }
  }
  if (least == nullptr) return false;
  if (least->phase == Connection::Phase::kReading && least->reader->began()) {
    Refuse(*least, 503,
           Unavailable("there were too many connections, and this one had been sending its request for longest; send "
                       "the whole request at once"));
  }
  Close(*least);
  return true;
}

void ConnectionLoop::Read(Connection& connection) {
  char buffer[kReadBytes];
  if (!connection.IsRead()) return;  // another one's bytes have cost it its place since poll
  const ssize_t count = connection.wire->Read(buffer, sizeof buffer);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (count <= 0) return Close(connection);
  if (connection.phase == Connection::Phase::kClosing) return;  // read only to be dropped
  connection.last_byte = Now();
  Feed(connection, {buffer, static_cast<size_t>(count)});
}

void ConnectionLoop::Feed(Connection& connection, std::string_view bytes) {
  using State = RequestReader::State;
  RequestReader& reader = *connection.reader;
  if (!reader.began()) connection.since = connection.last_byte;
  if (reader.state() == State::kHead) {
    bytes.remove_prefix(reader.Take(bytes));
    if (reader.state() == State::kBody) BeginBody(connection, !bytes.empty());
  }
  if (reader.state() == State::kBody) bytes.remove_prefix(reader.Take(bytes));
  if (reader.state() == State::kComplete) connection.next = bytes;
  Count(connection);
  KeepWithinBuffer();
  if (connection.phase != Connection::Phase::kReading) return;

  switch (reader.state()) {
    case State::kHead:
    case State::kBody:
      return;
    case State::kComplete:
      return Dispatch(connection);
    case State::kHeadTooLarge:
      return Refuse(connection, 431,
                    InvalidArgument(fmt::format("the head of the request is larger than {} bytes",
                                                limits_.request.max_head_bytes)));
    case State::kBodyTooLarge:
      return Refuse(connection, 413,
                    InvalidArgument(
                        fmt::format("the body is larger than {} bytes (--max-body)", limits_.request.max_body_bytes)));
    case State::kBadChunk:
      return Refuse(connection, 400, InvalidArgument("the body is not in chunks, as its head says"));
  }
}

void ConnectionLoop::BeginBody(Connection& connection, bool more_is_here) {
  RequestReader& reader = *connection.reader;
  connection.since = connection.last_byte;
  if (!handlers_.wants_body(reader.head())) return reader.SkipBody();
  if (reader.expects_continue() && !more_is_here) connection.wire->Write("HTTP/1.1 100 Continue\r\n\r\n");
}

void ConnectionLoop::Count(Connection& connection) {
  const size_t held = connection.reader->held_bytes() + connection.next.capacity();
  buffered_bytes_ += held - connection.counted_bytes;
  connection.counted_bytes = held;
}

// The request that has been under way for longest gives way: one that is sent at once is complete long before that.
void ConnectionLoop::KeepWithinBuffer() {
  while (buffered_bytes_ > limits_.buffered_bytes) {
    Connection* oldest = nullptr;
    for (const auto& connection : connections_) {
      if (connection->phase != Connection::Phase::kReading || !connection->reader->began()) continue;
      if (oldest == nullptr || connection->since < oldest->since) oldest = connection.get();
    }
    if (oldest == nullptr) return;
    Refuse(*oldest, 503,
           Unavailable("requests that have not arrived completely hold too many bytes (limit: --max-buffered)"));
  }
}

void ConnectionLoop::Dispatch(Connection& connection) {
  const RequestReader& reader = *connection.reader;
  const bool close = reader.must_close() || connection.requests + 1 >= limits_.requests_per_connection;
  const bool probe = handlers_.is_probe(reader.head());
  (probe ? probe_workers_ : workers_).Add([this, &connection, &reader, close, probe] {
    bool keep = false;
    try {
      keep = handlers_.answer({*connection.wire, reader, connection.peer, close, probe}) && !close;
    } catch (const std::exception& error) {
      LogError("a request could not be answered: {}", error.what());
    }
    const std::lock_guard lock(mutex_);
    answered_.emplace_back(&connection, keep);
    Wake();
  });
  connection.phase = Connection::Phase::kAnswering;
  ++connection.requests;
  ++answering_;
}

void ConnectionLoop::TakeBack() {
  std::vector<std::pair<Connection*, bool>> answered;
  {
    const std::lock_guard lock(mutex_);
    answered.swap(answered_);
  }
  for (const auto& [connection, keep] : answered) {
    --answering_;
    connection->reader = std::make_unique<RequestReader>(limits_.request);
    connection->since = connection->last_byte = Now();
    connection->phase = Connection::Phase::kReading;
    const std::string next = std::exchange(connection->next, {});
    Count(*connection);
    if (!keep) {
      BeginClosing(*connection);
    } else if (!next.empty()) {
      Feed(*connection, next);
    }
    if (connection->IsRead() && connection->wire->HasMore()) Read(*connection);
  }
}

void ConnectionLoop::Refuse(Connection& connection, int http_status, const Status& why) {
  connection.wire->Write(
      ErrorAnswer(http_status, handlers_.refused(connection.reader->head(), connection.peer, http_status, why)));
  BeginClosing(connection);
}

void ConnectionLoop::BeginClosing(Connection& connection) {
  connection.phase = Connection::Phase::kClosing;
  connection.since = Now();
  connection.reader = std::make_unique<RequestReader>(limits_.request);
  Count(connection);
  connection.wire->EndWriting();
}

void ConnectionLoop::Close(Connection& connection) {
  if (connection.phase == Connection::Phase::kClosed) return;
  connection.phase = Connection::Phase::kClosed;
  connection.wire.reset();
  buffered_bytes_ -= std::exchange(connection.counted_bytes, 0);
  --open_;
  const auto of_peer = per_peer_.find(connection.peer.group);
  if (--of_peer->second == 0) per_peer_.erase(of_peer);
}

TimePoint ConnectionLoop::DeadlineOf(const Connection& connection) const {
  if (connection.phase == Connection::Phase::kClosing) return connection.since + kLinger;
  const RequestReader& reader = *connection.reader;
  if (!reader.began()) return Later(connection.since, limits_.idle);
  if (reader.state() == RequestReader::State::kHead) return Later(connection.since, limits_.head);
  return std::min(Later(connection.since, limits_.body), Later(connection.last_byte, limits_.silence));
}

void ConnectionLoop::EndOverdue(Connection& connection, TimePoint now) {
  if (now < DeadlineOf(connection)) return;
  if (connection.phase == Connection::Phase::kClosing || !connection.reader->began()) return Close(connection);
  const bool head = connection.reader->state() == RequestReader::State::kHead;
  Refuse(connection, 408,
         InvalidArgument(head ? fmt::format("the head of the request took longer than {:.3g} s (--http-head-seconds)",
                                            Milliseconds(limits_.head) / 1000)
                              : fmt::format("the body took longer than {:.3g} s (--http-body-seconds), or no byte of "
                                            "it came for {:.3g} s (--http-timeout)",
                                            Milliseconds(limits_.body) / 1000, Milliseconds(limits_.silence) / 1000)));
}

}  // namespace outrider
