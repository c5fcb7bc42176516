// The loop over real sockets, with an answer that echoes what it was asked. What httplib makes of requests is tested in
// exchange_stream_test.cc and server_test.cc; here: who is read, who is dropped when, and who is answered meanwhile.
#include "http/connection_loop.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

#include "http/socket_test_util.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

// Accepts on a free port and answers "METHOD path body-size\n"; /wait is answered when the test says so.
class EchoServer {
 public:
  explicit EchoServer(const ConnectionLimits& limits = {})
      : listening_(::socket(AF_INET, SOCK_STREAM, 0)),
        loop_(limits, {.wants_body = [](const RequestHead& head) { return head.path() != "/unwanted"; },
                       .is_probe = [](const RequestHead& head) { return head.path() == "/probe"; },
                       .refused =
                           [this](const RequestHead&, const Peer& peer, int http_status, const Status& why) {
                             EXPECT_EQ(peer.address, "127.0.0.1");
                             const std::lock_guard lock(mutex_);
                             refusals_.insert(http_status);
                             return why.message();
                           },
                       .answer = [this](const Exchange& exchange) { return Answer(exchange); }}) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listening_, 1024), 0);
    socklen_t length = sizeof address;
    getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { loop_.Run(listening_); });
  }
  ~EchoServer() {
    Release();
    Stop(kLimit);
    close(listening_);
  }

  void Stop(Duration max_wait) {
    loop_.Stop(max_wait);
    if (thread_.joinable()) thread_.join();
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }
  int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  bool Refused(int http_status) {
    const std::lock_guard lock(mutex_);
    return refusals_.contains(http_status);
  }
  int port() const { return port_; }

 private:
  bool Answer(const Exchange& exchange) {
    const RequestHead& head = exchange.request.head();
    if (head.path() == "/wait") {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.wait(lock, [this] { return released_; });
      --waiting_;
    }
    if (head.path() == "/throw") throw std::bad_alloc();
    const std::string text = std::string(head.method()) + " " + std::string(head.path()) + " " +
                             std::to_string(exchange.request.body().size()) + "\n";
    exchange.wire.Write(text);
    return head.path() != "/close";
  }

  const int listening_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  int waiting_ = 0;
  std::set<int> refusals_;
  ConnectionLoop loop_;
  std::thread thread_;
};

std::string Get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}
std::string Post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(ConnectionLoopTest, AnswersInOrderOnOneConnection) {
  EchoServer server;
  Socket client(server.port());
  ASSERT_TRUE(client.Send(Get("/a")));
  ASSERT_TRUE(client.ReadUntil("GET /a 0\n"));
  ASSERT_TRUE(client.Send(Post("/b", "hello") + Get("/c") + Post("/d", std::string(200'000, 'x')) + Get("/e")));
  ASSERT_TRUE(client.ReadUntil("GET /e 0\n"));
  EXPECT_EQ(client.received(), "GET /a 0\nPOST /b 5\nGET /c 0\nPOST /d 200000\nGET /e 0\n");
  ASSERT_TRUE(client.Send(Get("/close") + Get("/never")));
  EXPECT_TRUE(client.ReadToEnd());
  EXPECT_EQ(client.received().find("/never"), std::string::npos);
}

TEST(ConnectionLoopTest, BytesMayComeOneByOne) {
  EchoServer server;
  Socket client(server.port());
  for (const char byte : Post("/a", "hello") + Get("/b")) ASSERT_TRUE(client.Send(std::string(1, byte)));
  EXPECT_TRUE(client.ReadUntil("POST /a 5\nGET /b 0\n"));
}

TEST(ConnectionLoopTest, AnExceptionCostsOneConnection) {
  EchoServer server;
  Socket client(server.port()), other(server.port());
  ASSERT_TRUE(client.Send(Get("/throw")));
  EXPECT_TRUE(client.ReadToEnd());
  ASSERT_TRUE(other.Send(Get("/a")));
  EXPECT_TRUE(other.ReadUntil("GET /a 0\n"));
}

TEST(ConnectionLoopTest, ClientsThatAskAreToldToGoOn) {
  EchoServer server;
  const auto head = [](const std::string& path) {
    return "POST " + path + " HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
  };
  Socket wanted(server.port());
  ASSERT_TRUE(wanted.Send(head("/a")));
  ASSERT_TRUE(wanted.ReadUntil("HTTP/1.1 100 Continue\r\n\r\n"));
  ASSERT_TRUE(wanted.Send("hello"));
  EXPECT_TRUE(wanted.ReadUntil("POST /a 5\n"));
  Socket unwanted(server.port());
  ASSERT_TRUE(unwanted.Send(head("/unwanted")));
  EXPECT_TRUE(unwanted.ReadToEnd()) << "answered without the body, and closed";
  EXPECT_EQ(unwanted.received(), "POST /unwanted 0\n");
}

// Far more slow senders than workers: nobody waits for them.
TEST(ConnectionLoopTest, SlowSendersHoldNoWorker) {
  ConnectionLimits limits;
  limits.workers = limits.probe_workers = 1;
  limits.idle = limits.head = limits.body = limits.silence = kLimit;
  EchoServer server(limits);
  const std::string beginnings[] = {"", "POST /a HT", "POST /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nx",
                                    "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"};
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(slow.back()->Send(beginnings[i % 4]));
  }
  for (int i = 0; i < 20; ++i) {
    for (int j = 1; j < 100; j += 4) ASSERT_TRUE(slow[j]->Send("x"));
    Socket quick(server.port());
    ASSERT_TRUE(quick.Send(Post("/quick", "body")));
    ASSERT_TRUE(quick.ReadUntil("POST /quick 4\n"));
  }
  ASSERT_TRUE(slow[3]->Send("cde\r\n0\r\n\r\n"));
  EXPECT_TRUE(slow[3]->ReadUntil("POST /a 5\n")) << "a slow one is served when its request is complete";
}

TEST(ConnectionLoopTest, ProbesHaveWorkersOfTheirOwn) {
  ConnectionLimits limits;
  limits.workers = 2;
  EchoServer server(limits);
  std::vector<std::unique_ptr<Socket>> busy;
  for (int i = 0; i < 5; ++i) {
    busy.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(busy.back()->Send(Get("/wait")));
  }
  ASSERT_TRUE(Eventually([&] { return server.waiting() == 2; }));
  Socket probe(server.port());
  ASSERT_TRUE(probe.Send(Get("/probe")));
  EXPECT_TRUE(probe.ReadUntil("GET /probe 0\n"));
  EXPECT_EQ(server.waiting(), 2) << "no more at once than there are workers";
  server.Release();
  for (const auto& client : busy) EXPECT_TRUE(client->ReadUntil("GET /wait 0\n"));
}

// Each kind of slowness has a deadline that drips do not move.
TEST(ConnectionLoopTest, SlowSendersAreDroppedAtTheDeadline) {
  ConnectionLimits limits;
  limits.idle = limits.head = limits.body = milliseconds(300);
  EchoServer server(limits);
  const std::string beginnings[] = {"POST /a HTTP/1.1\r\nX: ", "POST /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n",
                                    "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n"};
  for (const std::string& beginning : beginnings) {
    Socket slow(server.port());
    const TimePoint start = Clock::Real().Now();
    ASSERT_TRUE(slow.Send(beginning));
    while (slow.Send("x") && Clock::Real().Now() - start < kLimit && !slow.HasInput()) {
      std::this_thread::sleep_for(milliseconds(5));
    }
    const auto took = Clock::Real().Now() - start;
    EXPECT_GE(took, milliseconds(290)) << beginning;
    EXPECT_LT(took, kLimit);
    EXPECT_TRUE(slow.ReadUntil("HTTP/1.1 408 ")) << slow.received();
    EXPECT_TRUE(slow.ReadUntil("seconds)")) << "names the flag: " << slow.received();
  }
  Socket silent(server.port());
  EXPECT_TRUE(silent.ReadToEnd());
  EXPECT_EQ(silent.received(), "") << "who asked nothing is told nothing";
}

TEST(ConnectionLoopTest, ASilentBodyIsDroppedBeforeItsDeadline) {
  ConnectionLimits limits;
  limits.silence = milliseconds(100);
  limits.body = kLimit;
  EchoServer server(limits);
  Socket silent(server.port());
  ASSERT_TRUE(silent.Send("POST /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc"));
  EXPECT_TRUE(silent.ReadUntil("HTTP/1.1 408 "));
}

TEST(ConnectionLoopTest, LimitsOfSizeAreErrors) {
  ConnectionLimits limits;
  limits.request = {.max_head_bytes = 1000, .max_body_bytes = 2000};
  EchoServer server(limits);
  const std::pair<std::string, const char*> requests[] = {
      {"GET /" + std::string(5000, 'x'), "HTTP/1.1 431 "},
      {"POST / HTTP/1.1\r\nContent-Length: 2001\r\n\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7d1\r\n", "HTTP/1.1 413 "},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnothing\r\n", "HTTP/1.1 400 "}};
  for (const auto& [request, answer] : requests) {
    Socket client(server.port());
    ASSERT_TRUE(client.Send(request));
    EXPECT_TRUE(client.ReadToEnd());
    EXPECT_TRUE(client.received().starts_with(answer)) << client.received();
  }
  // A client that sends on is listened to until it has read the answer.
  Socket eager(server.port());
  ASSERT_TRUE(eager.Send("POST / HTTP/1.1\r\nContent-Length: 4000000\r\n\r\n"));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(eager.Send(std::string(100'000, 'x'))) << i;
  EXPECT_TRUE(eager.ReadUntil("HTTP/1.1 413 "));
}

TEST(ConnectionLoopTest, ANewConnectionDisplacesTheSlowest) {
  for (const bool per_peer : {false, true}) {
    ConnectionLimits limits;
    (per_peer ? limits.connections_per_peer : limits.connections) = 4;
    limits.idle = limits.head = kLimit;
    limits.grace = Duration::zero();
    EchoServer server(limits);
    Socket oldest(server.port()), second(server.port()), idle(server.port()), busy(server.port());
    ASSERT_TRUE(oldest.Send("GET /oldest HT"));
    // The loop has read this before it reads what is sent after an answer to a later request.
    ASSERT_TRUE(busy.Send(Get("/first")));
    ASSERT_TRUE(busy.ReadUntil("GET /first 0\n"));
    ASSERT_TRUE(second.Send("GET /second HT"));
    ASSERT_TRUE(busy.Send(Get("/wait")));
    ASSERT_TRUE(Eventually([&] { return server.waiting() == 1; }));
    Socket fifth(server.port());
    ASSERT_TRUE(fifth.Send(Get("/fifth")));
    EXPECT_TRUE(fifth.ReadUntil("GET /fifth 0\n"));
    EXPECT_TRUE(idle.ReadToEnd()) << "the idle one first";
    ASSERT_TRUE(fifth.Send("GET /more HT"));
    Socket sixth(server.port());
    ASSERT_TRUE(sixth.Send(Get("/sixth")));
    EXPECT_TRUE(sixth.ReadUntil("GET /sixth 0\n"));
    EXPECT_TRUE(oldest.ReadToEnd()) << "then the one that has been sending for longest";
    ASSERT_TRUE(second.Send("TP/1.1\r\n\r\n"));
    EXPECT_TRUE(second.ReadUntil("GET /second 0\n")) << "the others are still there";
    server.Release();
    EXPECT_TRUE(busy.ReadUntil("GET /wait 0\n")) << "and nobody is dropped who is being answered";
  }
}

// Those that connect at the same time do not take each other's place before they could send anything.
TEST(ConnectionLoopTest, NewConnectionsDisplaceSlowSendersAndNotEachOther) {
  ConnectionLimits limits;
  limits.connections_per_peer = 4;
  limits.idle = limits.head = limits.grace = kLimit;
  EchoServer server(limits);
  Socket busy(server.port());
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(slow.back()->Send("GET /slow HT"));
  }
  // The loop has read all this before it answers what is sent now, and nobody takes the place of one who waits.
  ASSERT_TRUE(busy.Send(Get("/wait")));
  ASSERT_TRUE(Eventually([&] { return server.waiting() == 1; }));
  Socket one(server.port()), other(server.port());
  int dropped = 0;
  for (int i = 0; i < 2; ++i) dropped += slow[static_cast<size_t>(i)]->ReadToEnd();
  EXPECT_EQ(dropped, 2) << "both are there";
  for (Socket* fresh : {&one, &other}) {
    ASSERT_TRUE(fresh->Send(Get("/fresh")));
    EXPECT_TRUE(fresh->ReadUntil("GET /fresh 0\n"));
  }
}

TEST(ConnectionLoopTest, TooManyAnswersAtOnceAre503) {
  ConnectionLimits limits;
  limits.connections_per_peer = 3;
  limits.workers = 3;
  EchoServer server(limits);
  std::vector<std::unique_ptr<Socket>> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(busy.back()->Send(Get("/wait")));
  }
  ASSERT_TRUE(Eventually([&] { return server.waiting() == 3; }));
  Socket refused(server.port());
  EXPECT_TRUE(refused.ReadToEnd());
  EXPECT_TRUE(refused.received().starts_with("HTTP/1.1 503 ")) << refused.received();
  EXPECT_NE(refused.received().find("Retry-After: "), std::string::npos);
  EXPECT_NE(refused.received().find("--max-connections-per-peer"), std::string::npos);
}

TEST(ConnectionLoopTest, ManySlowBodiesCannotFillTheMemory) {
  ConnectionLimits limits;
  limits.buffered_bytes = 1'000'000;
  limits.body = kLimit;
  EchoServer server(limits);
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 20; ++i) {  // 100 kB each, 2 MB in all
    slow.push_back(std::make_unique<Socket>(server.port()));
    ASSERT_TRUE(slow.back()->Send("POST /slow HTTP/1.1\r\nContent-Length: 200000\r\n\r\n" + std::string(100'000, 'x')));
  }
  ASSERT_TRUE(Eventually([&] { return server.Refused(503); }));
  EXPECT_TRUE(slow[0]->ReadUntil("--max-buffered")) << "the oldest gives way: " << slow[0]->received();
  Socket quick(server.port());
  ASSERT_TRUE(quick.Send(Post("/quick", std::string(150'000, 'x'))));
  EXPECT_TRUE(quick.ReadUntil("POST /quick 150000\n"));
  ASSERT_TRUE(slow[19]->Send(std::string(100'000, 'x')));
  EXPECT_TRUE(slow[19]->ReadUntil("POST /slow 200000\n")) << "the newest is still there";
}

TEST(ConnectionLoopTest, StoppingWaitsForAnswersAndForNobodyElse) {
  EchoServer server;
  Socket busy(server.port()), slow(server.port()), idle(server.port());
  ASSERT_TRUE(busy.Send(Get("/wait")));
  ASSERT_TRUE(slow.Send("GET / HT"));
  ASSERT_TRUE(Eventually([&] { return server.waiting() == 1; }));
  std::thread stopping([&] { server.Stop(kLimit); });
  EXPECT_TRUE(slow.ReadToEnd());
  EXPECT_TRUE(idle.ReadToEnd());
  EXPECT_FALSE(Socket(server.port()).connected());
  EXPECT_EQ(server.waiting(), 1);
  server.Release();
  EXPECT_TRUE(busy.ReadUntil("GET /wait 0\n"));
  stopping.join();
}

TEST(ConnectionLoopTest, StoppingDoesNotWaitForLong) {
  EchoServer server;
  Socket busy(server.port());
  ASSERT_TRUE(busy.Send(Get("/wait")));
  ASSERT_TRUE(Eventually([&] { return server.waiting() == 1; }));
  std::thread stopping([&] { server.Stop(milliseconds(50)); });
  EXPECT_TRUE(busy.ReadToEnd()) << "the connection of an answer that takes too long is shut down";
  server.Release();
  stopping.join();
}

}  // namespace
}  // namespace outrider
