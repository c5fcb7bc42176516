#include "http/exchange_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

namespace outrider {
namespace {

using std::chrono::milliseconds;

struct ExchangeStreamTest : testing::Test {
  ExchangeStreamTest() { fcntl(sockets[0], F_SETFL, O_NONBLOCK); }
  ~ExchangeStreamTest() override { close(sockets[1]); }

  void Ask(const std::string& bytes) {
    for (std::string_view rest = bytes; !rest.empty();) {
      const size_t count = reader.Take(rest);
      ASSERT_GT(count, 0u);
      rest.remove_prefix(count);
    }
    ASSERT_EQ(reader.state(), RequestReader::State::kComplete);
  }

  static std::array<int, 2> Pair() {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
    return pair;
  }

  const std::array<int, 2> sockets = Pair();
  Wire wire{sockets[0]};
  RequestReader reader{{}};
  Peer peer;
};

TEST_F(ExchangeStreamTest, GivesTheRequestAndThenTheEnd) {
  Ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
  const Exchange exchange{wire, reader, peer, false, false};
  ExchangeStream stream(exchange, milliseconds(10));
  std::string all;
  char buffer[7];
  for (ssize_t count; (count = stream.read(buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(count));
  EXPECT_EQ(all, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
  EXPECT_TRUE(stream.all_was_read());
  EXPECT_EQ(stream.read(buffer, sizeof buffer), 0);
}

TEST_F(ExchangeStreamTest, RemembersTheStatus) {
  Ask("GET / HTTP/1.1\r\n\r\n");
  const Exchange exchange{wire, reader, peer, false, false};
  ExchangeStream stream(exchange, milliseconds(10));
  EXPECT_EQ(stream.status(), 0);
  const std::string answer = "HTTP/1.1 404 Not Found\r\n\r\n";
  EXPECT_EQ(stream.write(answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
  EXPECT_EQ(stream.write("HTTP/1.1 200 OK\r\n", 17), 17) << "in the body";
  EXPECT_EQ(stream.status(), 404);
  EXPECT_EQ(stream.bytes_written(), answer.size() + 17);
}

TEST_F(ExchangeStreamTest, AClientThatReadsNothingIsGivenUp) {
  Ask("GET / HTTP/1.1\r\n\r\n");
  const Exchange exchange{wire, reader, peer, false, false};
  ExchangeStream stream(exchange, milliseconds(50));
  const std::string block(1 << 20, 'x');
  const TimePoint start = Clock::Real().Now();
  ssize_t count = 0;
  for (int i = 0; i < 1000 && count >= 0; ++i) count = stream.write(block.data(), block.size());
  EXPECT_LT(count, 0);
  EXPECT_GE(Clock::Real().Now() - start, milliseconds(45));
}

// A byte now and then is not enough.
TEST_F(ExchangeStreamTest, AClientThatReadsInDripsIsGivenUp) {
  const int small = 2048;
  for (const int socket : sockets) setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  Ask("GET / HTTP/1.1\r\n\r\n");
  const Exchange exchange{wire, reader, peer, false, false};
  ExchangeStream stream(exchange, milliseconds(100));
  std::atomic<bool> given_up = false;
  std::thread drip([&] {
    char byte;
    while (!given_up && recv(sockets[1], &byte, 1, 0) > 0) std::this_thread::sleep_for(milliseconds(20));
  });
  const std::string block(100, 'x');
  ssize_t count = 0;
  for (int i = 0; i < 100'000 && count >= 0; ++i) count = stream.write(block.data(), block.size());
  EXPECT_LT(count, 0);
  EXPECT_LT(stream.bytes_written(), 100'000u);
  given_up = true;
  shutdown(sockets[0], SHUT_RDWR);
  drip.join();
}

TEST_F(ExchangeStreamTest, KnowsWhetherTheClientIsThere) {
  Ask("GET / HTTP/1.1\r\n\r\n");
  const Exchange exchange{wire, reader, peer, false, false};
  const ExchangeStream stream(exchange, milliseconds(10));
  EXPECT_TRUE(stream.is_peer_alive());
  ASSERT_EQ(send(sockets[1], "next", 4, 0), 4);
  EXPECT_TRUE(stream.is_peer_alive()) << "it sends its next request";
  char buffer[4];
  ASSERT_EQ(recv(sockets[0], buffer, 4, 0), 4);
  shutdown(sockets[1], SHUT_RDWR);
  EXPECT_FALSE(stream.is_peer_alive());
}

}  // namespace
}  // namespace outrider
