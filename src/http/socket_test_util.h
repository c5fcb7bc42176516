// For tests over real sockets: a client that sends and receives exactly what it is told to.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"

namespace outrider {

inline constexpr auto kLimit = std::chrono::seconds(60);  // for what takes milliseconds on an idle machine

// Asks until the answer is yes; false if that takes longer than kLimit.
inline bool Eventually(const std::function<bool()>& condition) {
  for (const TimePoint end = Clock::Real().Now() + kLimit; !condition();) {
    if (Clock::Real().Now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// A connection to `port` that sends and receives exactly what it is told to.
class Socket {
 public:
  explicit Socket(int port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{std::chrono::seconds(kLimit).count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Socket() { Close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connected() const { return connected_; }
  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  // Whether there is something to read, be it the end.
  bool HasInput() const {
    pollfd polled{fd_, POLLIN, 0};
    return poll(&polled, 1, 0) > 0;
  }

  void FinishSending() const { shutdown(fd_, SHUT_WR); }

  // Reads on until `text` has come; false if the stream ended, or kLimit was over, before.
  bool ReadUntil(const std::string& text) {
    while (received_.find(text) == std::string::npos) {
      if (!ReadSome()) return false;
    }
    return true;
  }

  // Reads to the end; false if kLimit was over before.
  bool ReadToEnd() {
    while (ReadSome()) {
    }
    return ended_;
  }

  const std::string& received() const { return received_; }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  bool ReadSome() {
    char buffer[4096];
    const ssize_t count = recv(fd_, buffer, sizeof buffer, 0);
    if (count > 0) received_.append(buffer, static_cast<size_t>(count));
    ended_ = count == 0 || (count < 0 && errno == ECONNRESET);
    return count > 0;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string received_;
};

}  // namespace outrider
