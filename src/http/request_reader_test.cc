#include "http/request_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace outrider {
namespace {

using State = RequestReader::State;

// Feeds in pieces of `step` bytes until the reader takes no more; returns how many bytes it took.
size_t Feed(RequestReader& reader, std::string_view bytes, size_t step = 1 << 20) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    const size_t count = reader.Take(bytes.substr(taken, step));
    if (count == 0) break;
    taken += count;
  }
  return taken;
}

std::string WhatHttplibGets(const RequestReader& reader) {
  std::string all;
  for (const std::string_view part : {reader.head_text(), reader.body_prefix(), reader.body(), reader.body_suffix()}) {
    all += part;
  }
  return all;
}

const std::string kGet = "GET /health?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kPost = "POST /completion HTTP/1.1\r\nHost: localhost\r\ncontent-length:  5 \r\n\r\nhello";
const std::string kChunkedHead = "POST /completion HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n";

TEST(RequestReaderTest, EndsWhereTheRequestEnds) {
  for (const std::string& request : {kGet, kPost}) {
    for (size_t step = 1; step <= request.size(); ++step) {
      RequestReader reader({});
      EXPECT_EQ(Feed(reader, request + "GET /next", step), request.size()) << step;
      EXPECT_EQ(reader.state(), State::kComplete);
      EXPECT_EQ(WhatHttplibGets(reader), request);
      EXPECT_FALSE(reader.must_close());
    }
  }
}

TEST(RequestReaderTest, IsNotCompleteBefore) {
  for (const std::string& request : {kGet, kPost, kChunkedHead + "3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n"}) {
    RequestReader reader({});
    EXPECT_FALSE(reader.began());
    Feed(reader, request.substr(0, request.size() - 1));
    EXPECT_TRUE(reader.state() == State::kHead || reader.state() == State::kBody);
    EXPECT_TRUE(reader.began());
  }
}

TEST(RequestReaderTest, ReadsTheHead) {
  RequestReader reader({});
  Feed(reader,
       "POST /a/b?c=d#e HTTP/1.0\r\nX-API-Key:\t key \r\nx-api-key: second\r\nSec-Fetch-Mode: cors\r\nEmpty:\r\n\r\n");
  const RequestHead& head = reader.head();
  EXPECT_EQ(head.method(), "POST");
  EXPECT_EQ(head.path(), "/a/b");
  EXPECT_TRUE(head.is_http_1_0());
  EXPECT_EQ(head.Header("x-Api-Key"), "key");
  EXPECT_TRUE(head.Has("empty"));
  EXPECT_EQ(head.Header("empty"), "");
  EXPECT_FALSE(head.Has("absent"));
}

TEST(RequestReaderTest, ChunksBecomeOne) {
  for (const std::string& chunks : {std::string("2\r\nhe\r\n3;name=\"value\"\r\nllo\r\n0\r\n\r\n"),
                                    std::string("005 \r\nhello\r\n00\r\nTrailer: dropped\r\n\r\n")}) {
    for (const size_t step : {1, 2, 3, 100}) {
      RequestReader reader({});
      const std::string request = kChunkedHead + chunks;
      EXPECT_EQ(Feed(reader, request + "GET", step), request.size());
      ASSERT_EQ(reader.state(), State::kComplete);
      EXPECT_EQ(WhatHttplibGets(reader), kChunkedHead + "5\r\nhello\r\n0\r\n\r\n");
    }
  }
  RequestReader empty({});
  Feed(empty, kChunkedHead + "0\r\n\r\n");
  ASSERT_EQ(empty.state(), State::kComplete);
  EXPECT_EQ(WhatHttplibGets(empty), kChunkedHead + "0\r\n\r\n");
}

TEST(RequestReaderTest, ChunksThatAreNone) {
  for (const char* chunks : {"x\r\n", "\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\r\nabc\n\r\n", "1\n2\r\n",
                             "ffffffffffffffffffff\r\n", "0x3\r\n", "3 3\r\n"}) {
    RequestReader reader({});
    Feed(reader, kChunkedHead + chunks);
    EXPECT_EQ(reader.state(), State::kBadChunk) << chunks;
  }
  RequestReader long_line({});
  Feed(long_line, kChunkedHead + "1;" + std::string(10'000, 'x'));
  EXPECT_EQ(long_line.state(), State::kBadChunk);
  RequestReader long_trailer({});
  std::string trailer = kChunkedHead + "0\r\n";
  for (int i = 0; i < 1000; ++i) trailer += "Name: a value of some length\r\n";
  Feed(long_trailer, trailer);
  EXPECT_EQ(long_trailer.state(), State::kBadChunk);
}

// Where two readers may disagree on the end of a request, this one is the connection's last.
TEST(RequestReaderTest, AmbiguousFramingEndsTheConnection) {
  for (const char* headers :
       {"Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, gzip\r\n", "Content-Length: +5\r\n",
        "Content-Length: 5,5\r\n", "Content-Length: 0x5\r\n", "Content-Length: -5\r\n",
        "Content-Length: 99999999999999999999999\r\n", "Content-Length : 5\r\n", " Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Content-Length:\r\n"}) {
    RequestReader reader({});
    const std::string head = std::string("POST / HTTP/1.1\r\n") + headers + "\r\n";
    EXPECT_EQ(Feed(reader, head + "hello"), head.size()) << headers;
    EXPECT_EQ(reader.state(), State::kComplete) << headers;
    EXPECT_TRUE(reader.must_close()) << headers;
    EXPECT_EQ(WhatHttplibGets(reader), head);
  }
  RequestReader same({});
  Feed(same, "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(same.body(), "hello") << "the same twice means one thing";
  RequestReader no_line({});
  EXPECT_EQ(Feed(no_line, "\r\nGET / HTTP/1.1\r\n\r\n", 1), 2u);
  EXPECT_TRUE(no_line.must_close());
}

TEST(RequestReaderTest, HeadsAndBodiesHaveALimit) {
  const RequestLimits limits{.max_head_bytes = 100, .max_body_bytes = 10};
  RequestReader long_head(limits);
  Feed(long_head, "GET /" + std::string(1000, 'x'), 7);
  EXPECT_EQ(long_head.state(), State::kHeadTooLarge);
  RequestReader declared(limits);
  Feed(declared, "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(declared.state(), State::kBodyTooLarge) << "before a byte of it has come";
  RequestReader fits(limits);
  Feed(fits, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789");
  EXPECT_EQ(fits.state(), State::kComplete);
  RequestReader chunks(limits);
  Feed(chunks, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\n2\r\n");
  EXPECT_EQ(chunks.state(), State::kBodyTooLarge);
}

TEST(RequestReaderTest, HoldsWhatWasSentAndNotWhatWasAnnounced) {
  RequestReader announced({.max_body_bytes = 8 << 20});
  Feed(announced, "POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\nx");
  EXPECT_LT(announced.held_bytes(), 20'000u);
  RequestReader small_chunks({.max_body_bytes = 8 << 20});
  Feed(small_chunks, kChunkedHead);
  for (int i = 0; i < 100'000; ++i) Feed(small_chunks, "1\r\nx\r\n");
  EXPECT_EQ(small_chunks.body().size(), 100'000u);
  EXPECT_LT(small_chunks.held_bytes(), 250'000u);
}

TEST(RequestReaderTest, ABodyThatIsNotWantedEndsTheConnection) {
  RequestReader reader({});
  const std::string head = kPost.substr(0, kPost.size() - 5);
  EXPECT_EQ(reader.Take(kPost), head.size()) << "stops at the end of the head, so that the caller can decide";
  reader.SkipBody();
  EXPECT_EQ(reader.state(), State::kComplete);
  EXPECT_TRUE(reader.must_close());
  EXPECT_EQ(WhatHttplibGets(reader), head);
}

TEST(RequestReaderTest, KnowsWhoWaitsToGoOn) {
  const auto expects = [](const std::string& head) {
    RequestReader reader({});
    Feed(reader, head);
    return reader.expects_continue();
  };
  EXPECT_TRUE(expects("POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(expects("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(expects("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(expects("GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n")) << "there is no body to send";
}

RC_GTEST_PROP(RequestReaderTest, PiecesDoNotMatter, (const std::string& body, size_t step, bool chunked)) {
  std::string request =
      chunked ? kChunkedHead : "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  if (chunked) {
    for (const char c : body) request += std::string("1\r\n") + c + "\r\n";
    request += "0\r\n\r\n";
  } else {
    request += body;
  }
  RequestReader reader({});
  RC_ASSERT(Feed(reader, request + "rest", 1 + step % 20) == request.size());
  RC_ASSERT(reader.state() == State::kComplete);
  RC_ASSERT(reader.body() == body);
}

}  // namespace
}  // namespace outrider
