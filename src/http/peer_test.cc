#include "http/peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace outrider {
namespace {

Peer V4(const char* text, uint16_t port = 80) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  return PeerOf(storage);
}

Peer V6(const char* text, uint16_t port = 80) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  return PeerOf(storage);
}

TEST(PeerTest, TellsAddressAndPort) {
  EXPECT_EQ(V4("192.0.2.7", 12345).address, "192.0.2.7");
  EXPECT_EQ(V4("192.0.2.7", 12345).port, 12345);
  EXPECT_EQ(V6("2001:db8::1", 443).address, "2001:db8::1");
  EXPECT_EQ(V6("2001:db8::1", 443).port, 443);
}

TEST(PeerTest, AnIpv4AddressIsAGroupOfItsOwn) {
  EXPECT_EQ(V4("192.0.2.7", 1).group, V4("192.0.2.7", 2).group);
  EXPECT_NE(V4("192.0.2.7").group, V4("192.0.2.8").group);
}

TEST(PeerTest, AnIpv6NetworkOf64BitsIsOneGroup) {
  EXPECT_EQ(V6("2001:db8:0:1::1").group, V6("2001:db8:0:1:ffff:ffff:ffff:ffff").group);
  EXPECT_NE(V6("2001:db8:0:1::1").group, V6("2001:db8:0:2::1").group);
}

TEST(PeerTest, AMappedIpv4AddressIsInTheGroupOfThatAddress) {
  EXPECT_EQ(V6("::ffff:192.0.2.7").group, V4("192.0.2.7").group);
  EXPECT_NE(V6("::ffff:192.0.2.7").group, V6("::ffff:192.0.2.8").group);
}

}  // namespace
}  // namespace outrider
