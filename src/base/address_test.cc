#include "base/address.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(AddressTest, HostsAndPorts) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {{"example.org:8090", "example.org", 8090},
               {"127.0.0.1:0", "127.0.0.1", 0},
               {"[::1]:65535", "::1", 65535},
               {"a:1", "a", 1}};
  for (const auto& [text, host, port] : cases) {
    const auto address = ParseAddress(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, port);
  }
}

TEST(AddressTest, AnythingElseIsAnError) {
  for (const char* text : {"", ":", ":80", "host", "host:", "host:x", "host:80x", "host:-1", "host:65536", "::1:80",
                           "[]:80", "[::1]", "host:80:90", "host:99999999999999999999"}) {
    const auto address = ParseAddress(text);
    EXPECT_FALSE(address.ok()) << text;
  }
}

TEST(AddressTest, Loopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"}) EXPECT_TRUE(IsLoopback(host));
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "example.org", "127.0.0.1.example.org", ""})
    EXPECT_FALSE(IsLoopback(host));
}

TEST(AddressTest, ThisMachineHasAName) {
  const std::vector<std::string> names = NamesOfThisMachine();
  ASSERT_EQ(names.size(), 3u);
  EXPECT_TRUE(names[0].starts_with(names[1])) << names[0];
  EXPECT_EQ(names[1].find('.'), std::string::npos) << names[1];
  EXPECT_EQ(names[2], names[1] + ".local");
}

}  // namespace
}  // namespace outrider
