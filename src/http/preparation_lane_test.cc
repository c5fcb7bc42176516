#include "http/preparation_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <new>
#include <vector>

namespace outrider {
namespace {

constexpr size_t kLarge = PreparationLane::kSmallBytes + 1;
const auto kThere = [] { return true; };

// Occupies the lane until it is let go.
struct Occupied {
  explicit Occupied(PreparationLane& lane, size_t bytes = kLarge)
      : run(std::async(std::launch::async, [this, &lane, bytes] {
          return lane.Run(bytes, kThere, [this] {
            begun.set_value();
            leave.get_future().wait();
          });
        })) {
    begun.get_future().wait();
  }
  ~Occupied() { leave.set_value(); }

  std::promise<void> begun, leave;
  std::future<Status> run;
};

TEST(PreparationLaneTest, SmallRequestsRunOnTheCallersThread) {
  PreparationLane lane(std::chrono::hours(1));
  const Occupied occupied(lane);
  std::thread::id ran_in;
  EXPECT_TRUE(lane.Run(kLarge - 1, kThere, [&] { ran_in = std::this_thread::get_id(); }).ok());
  EXPECT_EQ(ran_in, std::this_thread::get_id());
}

TEST(PreparationLaneTest, OnlySoManyRunAtATime) {
  for (const auto& [bytes, limit] : {std::pair(kLarge, 1), {kLarge - 1, 1}, {kLarge - 1, 3}}) {
    PreparationLane lane(std::chrono::hours(1), Clock::Real(), /*small_at_once=*/limit);
    std::atomic<int> inside = 0, ran = 0;
    std::atomic<bool> too_many = false;
    std::vector<std::future<void>> all;
    for (int i = 0; i < 12; ++i) {
      all.push_back(std::async(std::launch::async, [&, bytes = bytes, limit = limit] {
        EXPECT_TRUE(lane.Run(bytes, kThere,
                             [&] {
                               if (++inside > limit) too_many = true;
                               std::this_thread::yield();
                               --inside;
                               ++ran;
                             })
                        .ok());
      }));
    }
    for (auto& each : all) each.wait();
    EXPECT_FALSE(too_many) << bytes;
    EXPECT_EQ(ran, 12);
  }
}

TEST(PreparationLaneTest, SmallRequestsDoNotWaitForLessThanTheirNumber) {
  PreparationLane lane(std::chrono::hours(1), Clock::Real(), /*small_at_once=*/2);
  const Occupied occupied(lane, 1);
  bool ran = false;
  EXPECT_TRUE(lane.Run(2, kThere, [&] { ran = true; }).ok());
  EXPECT_TRUE(ran);
}

TEST(PreparationLaneTest, TheSmallestComesFirst) {
  for (const size_t base : {size_t{0}, kLarge}) {
    PreparationLane lane(std::chrono::hours(1), Clock::Real(), /*small_at_once=*/1);
    std::array<std::atomic<bool>, 6> waits = {};
    std::vector<size_t> order;
    std::vector<std::future<Status>> all;
    {
      const Occupied occupied(lane, base);
      for (const size_t size : {5, 1, 3, 2, 4}) {
        all.push_back(std::async(std::launch::async, [&, base, size] {
          return lane.Run(
              base + size,
              [&waits, size] {
                waits[size] = true;
                return true;
              },
              [&order, size] { order.push_back(size); });
        }));
        while (!waits[size]) std::this_thread::yield();
      }
    }
    for (auto& each : all) each.wait();
    EXPECT_EQ(order, (std::vector<size_t>{1, 2, 3, 4, 5})) << base;
  }
}

TEST(PreparationLaneTest, WhatIsThrownReachesTheCaller) {
  PreparationLane lane(std::chrono::hours(1));
  for (const size_t bytes : {size_t{1}, kLarge}) {
    EXPECT_THROW((void)lane.Run(bytes, kThere, [] { throw std::bad_alloc(); }), std::bad_alloc) << bytes;
  }
  bool ran = false;
  EXPECT_TRUE(lane.Run(kLarge, kThere, [&] { ran = true; }).ok());
  EXPECT_TRUE(ran);
}

TEST(PreparationLaneTest, NothingRunsForAClientThatIsGoneOrAfterTheDeadline) {
  ManualClock clock;
  PreparationLane lane(std::chrono::minutes(1), clock, /*small_at_once=*/1);
  const Occupied occupied(lane), occupied_by_small_one(lane, 1);
  bool ran = false;
  const auto job = [&] { ran = true; };
  const auto gone = [] { return false; };
  const auto time_passes = [&] {
    clock.Advance(std::chrono::minutes(1));
    return true;
  };
  for (const size_t bytes : {size_t{1}, kLarge}) {
    EXPECT_EQ(lane.Run(bytes, gone, job).code(), StatusCode::kUnavailable);
    EXPECT_EQ(lane.Run(bytes, time_passes, job).code(), StatusCode::kUnavailable);
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace outrider
