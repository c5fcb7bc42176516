#include "http/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace outrider {

Wire::~Wire() {
  close(socket_);
}

ssize_t Wire::Read(char* to, size_t size) {
  return recv(socket_, to, size, MSG_DONTWAIT);
}

ssize_t Wire::Write(std::string_view bytes) {
  return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Wire::PeerIsThere() {
  char byte = 0;
  const ssize_t count = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

void Wire::EndWriting() {
  shutdown(socket_, SHUT_WR);
}

}  // namespace outrider
