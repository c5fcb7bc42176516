// Wire: the bytes of one connection, as they are or through TLS (http/tls.h). Owns the socket, which is non-blocking.
//
// One thread at a time: the loop while a request is read, the worker while it is answered (http/connection_loop.h).
// Only socket() may be used beside it, to shut the connection down.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace outrider {

class Wire {
 public:
  explicit Wire(int socket) : socket_(socket) {}
  virtual ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int socket() const { return socket_; }

  // As recv and send: how many bytes, 0 at the end, or -1 with errno, which is EAGAIN if there is nothing to do now.
  virtual ssize_t Read(char* to, size_t size);
  virtual ssize_t Write(std::string_view bytes);

  // What poll is to wait for before it is worth reading again.
  virtual short awaited() const { return POLLIN; }

  // Whether there are bytes to read that poll does not know of.
  virtual bool HasMore() const { return false; }

  // Whether the peer has not gone away, as far as one can tell now. Leaves what it has sent to Read.
  virtual bool PeerIsThere();

  // Tells the peer that nothing more will be written.
  virtual void EndWriting();

 private:
  const int socket_;
};

}  // namespace outrider
