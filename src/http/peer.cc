#include "http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace outrider {

Peer PeerOf(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  Peer peer;
  if (from.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &from, sizeof address);
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof text);
    peer.port = ntohs(address.sin6_port);
    const auto* bytes = reinterpret_cast<const char*>(&address.sin6_addr);
    peer.group = IN6_IS_ADDR_V4MAPPED(&address.sin6_addr) ? std::string(bytes + 12, 4) : std::string(bytes, 8);
  } else {
    sockaddr_in address{};
    std::memcpy(&address, &from, sizeof address);
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    peer.port = ntohs(address.sin_port);
    peer.group = std::string(reinterpret_cast<const char*>(&address.sin_addr), 4);
  }
  peer.address = text;
  return peer;
}

}  // namespace outrider
