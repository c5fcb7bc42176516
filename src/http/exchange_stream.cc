#include "http/exchange_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace outrider {
namespace {

constexpr double kMinBytesPerSecond = 1024;

}  // namespace

ExchangeStream::ExchangeStream(const Exchange& exchange, Duration patience)
    : exchange_(exchange),
      patience_(patience),
      parts_{exchange.request.head_text(), exchange.request.body_prefix(), exchange.request.body(),
             exchange.request.body_suffix()} {}

bool ExchangeStream::is_readable() const {
  return std::any_of(std::begin(parts_), std::end(parts_), [](std::string_view part) { return !part.empty(); });
}

const char* ExchangeStream::buffered_data(size_t& size) const {
  for (const std::string_view part : parts_) {
    if (part.empty()) continue;
    size = part.size();
    return part.data();
  }
  size = 0;
  return nullptr;
}

void ExchangeStream::consume_buffered(size_t size) {
  for (std::string_view& part : parts_) {
    if (part.empty()) continue;
    part.remove_prefix(std::min(size, part.size()));
    return;
  }
}

ssize_t ExchangeStream::read(char* to, size_t size) {
  size_t here = 0;
  const char* from = buffered_data(here);
  if (from == nullptr) return 0;
  const size_t count = std::min(size, here);
  std::memcpy(to, from, count);
  consume_buffered(count);
  return static_cast<ssize_t>(count);
}

bool ExchangeStream::wait_writable() const {
  pollfd polled{exchange_.wire.socket(), POLLOUT, 0};
  if (poll(&polled, 1, 0) > 0) return true;
  const auto earned = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(bytes_written_) / kMinBytesPerSecond));
  const Duration left = std::min(patience_, patience_ + earned - waited_);
  if (left <= Duration::zero()) return false;
  const TimePoint start = Clock::Real().Now();
  const int ready = poll(&polled, 1, static_cast<int>(std::min(Milliseconds(left), 1e8)) + 1);
  waited_ += Clock::Real().Now() - start;
  return ready > 0;
}

bool ExchangeStream::is_peer_alive() const {
  return exchange_.wire.PeerIsThere();
}

ssize_t ExchangeStream::write(const char* from, size_t size) {
  if (status_ == 0 && size > 12) std::from_chars(from + 9, from + 12, status_);  // "HTTP/1.1 200 OK"
  while (true) {
    const ssize_t count = exchange_.wire.Write({from, size});
    if (count >= 0) {
      bytes_written_ += static_cast<size_t>(count);
      return count;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!wait_writable()) return -1;
  }
}

void ExchangeStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = exchange_.peer.address;
  port = exchange_.peer.port;
}

void ExchangeStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace outrider
