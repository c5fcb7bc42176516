#include "http/metrics_server.h"

#include <cpp-httplib/httplib.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/metrics_writer.h"
#include "http/socket_test_util.h"

namespace outrider {
namespace {

TEST(MetricsServerTest, ServesWhatItIsGivenAtEachRequest) {
  std::atomic<int> asked = 0;
  auto server = MetricsServer::Start("127.0.0.1:0", [&] { return "asked " + std::to_string(++asked) + "\n"; });
  ASSERT_TRUE(server.ok()) << server.status().message();
  ASSERT_GT((*server)->port(), 0);
  httplib::Client client("127.0.0.1", (*server)->port());

  for (const char* expected : {"asked 1\n", "asked 2\n"}) {
    const auto metrics = client.Get("/metrics");
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->status, 200);
    EXPECT_EQ(metrics->body, expected);
    EXPECT_EQ(metrics->get_header_value("Content-Type"), kMetricsContentType);
  }
  const auto health = client.Get("/health");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->body, R"({"status":"ok"})");
  EXPECT_EQ(asked, 2) << "a health check computes nothing";
  const auto other = client.Get("/elsewhere");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 404);
}

TEST(MetricsServerTest, SlowSendersHoldNobodyUp) {
  auto server = MetricsServer::Start("127.0.0.1:0", [] { return std::string("here\n"); });
  ASSERT_TRUE(server.ok());
  std::vector<std::unique_ptr<Socket>> slow;
  for (int i = 0; i < 200; ++i) {  // more than it keeps
    slow.push_back(std::make_unique<Socket>((*server)->port()));
    slow.back()->Send(i % 2 == 0 ? "GET /metr" : "GET /metrics HTTP/1.1\r\nContent-Length: 100\r\n\r\nx");
  }
  for (int i = 0; i < 10; ++i) {
    const auto answer = httplib::Client("127.0.0.1", (*server)->port()).Get("/metrics");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "here\n");
  }
}

TEST(MetricsServerTest, SaysWhyItCannotListen) {
  auto first = MetricsServer::Start("127.0.0.1:0", [] { return std::string(); });
  ASSERT_TRUE(first.ok());
  const std::string taken = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = MetricsServer::Start(taken, [] { return std::string(); });
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(taken), std::string::npos) << second.status().message();
  EXPECT_FALSE(MetricsServer::Start("nonsense", [] { return std::string(); }).ok());
}

TEST(MetricsServerTest, FreesItsPort) {
  int port = 0;
  {
    auto first = MetricsServer::Start("127.0.0.1:0", [] { return std::string(); });
    ASSERT_TRUE(first.ok());
    port = (*first)->port();
    ASSERT_TRUE(httplib::Client("127.0.0.1", port).Get("/health"));
  }
  EXPECT_FALSE(httplib::Client("127.0.0.1", port).Get("/health"));
}

}  // namespace
}  // namespace outrider
