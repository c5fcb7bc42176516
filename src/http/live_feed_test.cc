#include "http/live_feed.h"

#include <gtest/gtest.h>

#include <vector>

namespace outrider {
namespace {

TEST(LiveFeedTest, WatchersShareASnapshotUntilItIsOld) {
  ManualClock clock;
  int made = 0;
  LiveFeed feed([&](const Viewer& viewer) { return viewer.owner + std::to_string(++made); }, clock);
  const Viewer anna = {.owner = "anna"}, bert = {.owner = "bert"}, admin = {.owner = "bert", .sees_all = true};
  EXPECT_EQ(made, 0) << "nobody watches";
  EXPECT_EQ(feed.Snapshot(anna), "anna1");
  EXPECT_EQ(feed.Snapshot(anna), "anna1");
  EXPECT_EQ(feed.Snapshot(bert), "bert2") << "not what anna may see";
  EXPECT_EQ(feed.Snapshot(admin), "bert3");
  EXPECT_EQ(feed.Snapshot(anna), "anna1");
  clock.Advance(LiveFeed::kInterval);
  EXPECT_EQ(feed.Snapshot(anna), "anna4");
}

TEST(LiveFeedTest, OnlySoManyMayWatch) {
  LiveFeed feed([](const Viewer&) { return ""; });
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
  LiveFeed feed([](const Viewer&) { return ""; });
  feed.Stop();
  EXPECT_FALSE(feed.WaitForNext());
  EXPECT_FALSE(feed.Enter());
}

}  // namespace
}  // namespace outrider
