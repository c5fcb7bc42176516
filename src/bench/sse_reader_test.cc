#include "bench/sse_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace outrider {
namespace {

std::vector<std::string> Read(const std::string& bytes, size_t part) {
  std::vector<std::string> events;
  SseReader reader([&](std::string_view data) { events.emplace_back(data); });
  for (size_t i = 0; i < bytes.size(); i += part) EXPECT_TRUE(reader.Feed(std::string_view(bytes).substr(i, part)));
  return events;
}

TEST(SseReaderTest, ReadsEventsHoweverTheyAreCut) {
  const std::string bytes =
      ": hello\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\n\ndata: [DONE]\n\ndata: cut";
  for (size_t part = 1; part <= bytes.size(); ++part) {
    EXPECT_EQ(Read(bytes, part), (std::vector<std::string>{"{\"a\":1}", "two\nlines", "[DONE]"})) << part;
  }
}

TEST(SseReaderTest, GivesUpOnAnEventWithoutEnd) {
  SseReader reader([](std::string_view) {});
  const std::string megabyte(1 << 20, 'x');
  bool goes_on = true;
  int fed = 0;
  for (; goes_on && fed < 100; ++fed) goes_on = reader.Feed(megabyte);
  EXPECT_FALSE(goes_on);
  EXPECT_LT(fed, 20);
}

}  // namespace
}  // namespace outrider
