#include "http/live_feed.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

TEST(LiveFeedTest, WatchersShareASnapshotUntilItIsOld) {
  ManualClock clock;
  int made = 0;
  LiveFeed feed([&] { return std::to_string(++made); }, clock);
  EXPECT_EQ(made, 0) << "nobody watches";
  EXPECT_EQ(feed.Snapshot(), "1");
  EXPECT_EQ(feed.Snapshot(), "1");
  clock.Advance(LiveFeed::kInterval);
  EXPECT_EQ(feed.Snapshot(), "2");
}

TEST(LiveFeedTest, OnlySoManyMayWatch) {
  LiveFeed feed([] { return ""; });
  std::vector<std::shared_ptr<void>> places;
  for (int i = 0; i < LiveFeed::kMaxWatchers; ++i) {
    places.push_back(feed.Enter());
    ASSERT_TRUE(places.back());
  }
  EXPECT_FALSE(feed.Enter());
  places.pop_back();
  EXPECT_TRUE(feed.Enter());
}

TEST(LiveFeedTest, StoppingEndsTheWaitAndLetsNobodyIn) {
  LiveFeed feed([] { return ""; });
  feed.Stop();
  EXPECT_FALSE(feed.WaitForNext());
  EXPECT_FALSE(feed.Enter());
}

}  // namespace
}  // namespace outrider
