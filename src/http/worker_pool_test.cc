#include "http/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

namespace outrider {
namespace {

TEST(WorkerPoolTest, RunsEveryJobOnFewThreads) {
  std::atomic<int> ran = 0;
  WorkerPool pool(3);
  for (int i = 0; i < 100; ++i) pool.Add([&] { ++ran; });
  EXPECT_LE(pool.threads(), 3);
  pool.Join();
  EXPECT_EQ(ran, 100);
}

TEST(WorkerPoolTest, StartsAThreadForAJobThatFindsNoneIdle) {
  WorkerPool pool(8);
  EXPECT_EQ(pool.threads(), 0);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> running = 0;
  for (int i = 0; i < 8; ++i) {
    pool.Add([&] {
      ++running;
      released.wait();
    });
  }
  while (running < 8) std::this_thread::yield();  // all at once: none waits for another
  std::atomic<bool> ninth = false;
  pool.Add([&] { ninth = true; });
  EXPECT_EQ(pool.threads(), 8);
  EXPECT_FALSE(ninth);
  release.set_value();
  pool.Join();
  EXPECT_TRUE(ninth);
}

TEST(WorkerPoolTest, AJobThatThrowsCostsOnlyItself) {
  std::atomic<bool> ran = false;
  WorkerPool pool(1);
  pool.Add([] { throw std::runtime_error("a job's failure"); });
  pool.Add([] { throw 5; });
  pool.Add([&] { ran = true; });
  pool.Join();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace outrider
