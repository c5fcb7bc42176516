#include "http/entry.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(EntryTest, ProbesAreHealthAndMetrics) {
  for (const char* path : kHealthPaths) EXPECT_TRUE(IsProbePath(path) && IsOpenPath(path)) << path;
  EXPECT_TRUE(IsProbePath(kMetricsPath));
  EXPECT_FALSE(IsOpenPath(kMetricsPath)) << "they need a key where others do";
  for (const char* path : {"", "/", "/healthy", "/health/", "/v1/metrics", "/slots", "/v1/completions"})
    EXPECT_FALSE(IsProbePath(path) || IsOpenPath(path)) << path;
}

}  // namespace
}  // namespace outrider
