#include "engine/snapshot_store.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

namespace outrider {
namespace {

std::vector<uint8_t> Bytes(size_t count) {
  return std::vector<uint8_t>(count, 7);
}

TEST(SnapshotStoreTest, FindsTheLongestThatIsNotLonger) {
  SnapshotStore store(2, 1000);
  EXPECT_EQ(store.Latest(0, 100), nullptr);
  store.Keep(0, 100, Bytes(10));
  store.Keep(0, 200, Bytes(10));
  EXPECT_EQ(store.Latest(0, 99), nullptr);
  EXPECT_EQ(store.Latest(0, 199)->length, 100);
  EXPECT_EQ(store.Latest(0, 200)->length, 200);
  EXPECT_EQ(store.Latest(1, 500), nullptr) << "another sequence's";
}

TEST(SnapshotStoreTest, TheOneBeforeADraftIsReplacedAndTakenOnce) {
  SnapshotStore store(1, 1000);
  store.Keep(0, 100, Bytes(10));
  Snapshot* draft = store.BeforeDraft(0, 150);
  ASSERT_NE(draft, nullptr);
  EXPECT_TRUE(store.IsBeforeDraft(*store.Latest(0, 160)));
  EXPECT_EQ(store.BeforeDraft(0, 150), nullptr) << "it is there already";
  ASSERT_NE(store.BeforeDraft(0, 170), nullptr);
  EXPECT_EQ(store.Latest(0, 160)->length, 100);
  EXPECT_EQ(store.Latest(0, 170)->length, 170);
  store.DropBeforeDraft(0);
  EXPECT_EQ(store.Latest(0, 170)->length, 100);
  EXPECT_NE(store.BeforeDraft(0, 170), nullptr);
}

TEST(SnapshotStoreTest, WhatLiesPastACutIsForgotten) {
  SnapshotStore store(1, 1000);
  for (const Pos length : {100, 200, 300}) store.Keep(0, length, Bytes(10));
  store.BeforeDraft(0, 350);
  store.Cut(0, 200);
  EXPECT_EQ(store.Latest(0, 1000)->length, 200);
  EXPECT_EQ(store.kept_bytes(), 20u);
  EXPECT_NE(store.BeforeDraft(0, 350), nullptr) << "these are other tokens";
}

TEST(SnapshotStoreTest, ANewLifeKnowsNothingOfTheLast) {
  SnapshotStore store(2, 1000);
  store.Keep(0, 100, Bytes(10));
  store.Keep(1, 100, Bytes(10));
  store.BeforeDraft(0, 0);
  const uint64_t epoch = store.Latest(0, 100)->epoch;
  store.BeginEpoch(0);
  EXPECT_EQ(store.Latest(0, 1000), nullptr);
  EXPECT_EQ(store.kept_bytes(), 10u);
  store.Keep(0, 100, Bytes(10));
  EXPECT_NE(store.Latest(0, 100)->epoch, epoch);
  EXPECT_EQ(store.Latest(1, 100)->length, 100);
}

TEST(SnapshotStoreTest, SnapshotsCloseToEachOtherAreNotWorthKeeping) {
  SnapshotStore store(1, 1000);
  EXPECT_FALSE(store.WorthKeeping(0, 3, 10));
  EXPECT_TRUE(store.WorthKeeping(0, 100, 10));
  EXPECT_FALSE(store.WorthKeeping(0, 100, 2000)) << "more than there is for all";
  store.Keep(0, 100, Bytes(10));
  EXPECT_FALSE(store.WorthKeeping(0, 105, 10));
  EXPECT_TRUE(store.WorthKeeping(0, 200, 10));
}

TEST(SnapshotStoreTest, WhenMemoryIsShortTheOnesThatSaveLeastGo) {
  SnapshotStore store(2, 60);
  for (const Pos length : {500, 1000, 1100, 2000}) store.Keep(0, length, Bytes(10));
  EXPECT_EQ(store.Latest(0, 1999)->length, 1000) << "100 tokens are decoded again soonest";
  EXPECT_EQ(store.kept_bytes(), 30u);
  EXPECT_FALSE(store.WorthKeeping(0, 2100, 10)) << "it would be the first to go";
  EXPECT_TRUE(store.WorthKeeping(0, 2600, 10));
  store.Keep(1, 100, Bytes(10));
  EXPECT_EQ(store.Latest(1, 100)->length, 100) << "each sequence has its share";
}

RC_GTEST_PROP(SnapshotStoreTest, HoldsOnlyWhatIsStillTrue, ()) {
  constexpr int kSequences = 3;
  const auto budget = *rc::gen::inRange<size_t>(0, 100);
  SnapshotStore store(kSequences, budget);
  std::map<SeqId, Pos> lengths;
  const int actions = *rc::gen::inRange(0, 60);
  for (int i = 0; i < actions; ++i) {
    const SeqId seq = *rc::gen::inRange(0, kSequences);
    Pos& length = lengths[seq];
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        length += *rc::gen::inRange(0, 200);
        break;
      case 1:
        if (store.WorthKeeping(seq, length, 10)) store.Keep(seq, length, Bytes(10));
        break;
      case 2:
        store.BeforeDraft(seq, length);
        break;
      case 3:
        store.Cut(seq, length = *rc::gen::inRange(0, length + 1));
        break;
      case 4:
        store.BeginEpoch(seq);
        length = 0;
        break;
    }
    RC_ASSERT(store.kept_bytes() <= budget);
    for (SeqId each = 0; each < kSequences; ++each) {
      const Pos asked = *rc::gen::inRange(0, 1000);
      const Snapshot* snapshot = store.Latest(each, asked);
      if (snapshot == nullptr) continue;
      RC_ASSERT(snapshot->seq == each);
      RC_ASSERT(snapshot->length <= std::min(asked, lengths[each]));
    }
  }
}

}  // namespace
}  // namespace outrider
