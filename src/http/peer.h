// Who is at the other end of a connection.
#pragma once

#include <sys/socket.h>

#include <string>

namespace outrider {

struct Peer {
  std::string address;  // "127.0.0.1", "fe80::1"
  int port = 0;
  // What connections are counted by: an IPv4 address, or an IPv6 network (/64), of which one machine may use every
  // address. Bytes, not text.
  std::string group;
};

Peer PeerOf(const sockaddr_storage& from);

}  // namespace outrider
