// ExchangeStream: what httplib reads a request from and writes its answer to. The request is in memory, complete; after
// it comes the end of the stream, so that httplib can never read a part of another request. Writes go to the socket.
//
// While a client does not read its answer, a write waits, but only for a limited time: in sum `patience`, and a second
// more for each KiB that the client has taken. No single wait is longer than `patience`. Whoever sends short answers,
// which fit into the socket's buffer, gives a patience of milliseconds.
#pragma once

#include <cpp-httplib/httplib.h>

#include <string_view>

#include "base/clock.h"
#include "http/connection_loop.h"

namespace outrider {

class ExchangeStream final : public httplib::Stream {
 public:
  ExchangeStream(const Exchange& exchange, Duration patience);

  bool is_readable() const override;
  bool wait_readable() const override { return true; }
  bool wait_writable() const override;
  bool is_peer_alive() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return exchange_.wire.socket(); }
  time_t duration() const override { return 0; }
  const char* buffered_data(size_t& size) const override;
  void consume_buffered(size_t size) override;

  int status() const { return status_; }  // of the answer; 0 if nothing was written
  size_t bytes_written() const { return bytes_written_; }
  bool all_was_read() const { return !is_readable(); }

 private:
  static constexpr int kParts = 4;

  const Exchange& exchange_;
  const Duration patience_;
  std::string_view parts_[kParts];  // of the request; empty ones have been read
  int status_ = 0;
  size_t bytes_written_ = 0;
  mutable Duration waited_{};  // for the client to read, in all
};

}  // namespace outrider
