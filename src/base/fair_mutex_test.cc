#include "base/fair_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace outrider {
namespace {

// Whoever takes it again and again lets one who waits in between. With std::mutex this usually fails.
TEST(FairMutexTest, WhoWaitsComesBeforeWhoComesAgain) {
  FairMutex mutex;
  std::atomic<bool> about_to_wait = false, got_it = false;
  mutex.lock();
  std::thread other([&] {
    about_to_wait = true;
    const std::lock_guard lock(mutex);
    got_it = true;
  });
  while (!about_to_wait) std::this_thread::yield();
  int more = 0;
  for (; !got_it; ++more) {
    mutex.unlock();
    mutex.lock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  mutex.unlock();
  other.join();
  EXPECT_TRUE(got_it);
}

TEST(FairMutexTest, WhoGivesUpLeavesTheLine) {
  FairMutex mutex;
  mutex.lock();
  int asked = 0;
  EXPECT_FALSE(mutex.LockWhile([&] { return ++asked < 3; }, std::chrono::milliseconds(1)));
  EXPECT_EQ(asked, 3);
  std::atomic<bool> got_it = false;
  std::thread other([&] {
    got_it = mutex.LockWhile([] { return true; }, std::chrono::milliseconds(1));
    if (got_it) mutex.unlock();
  });
  mutex.unlock();
  other.join();
  EXPECT_TRUE(got_it);
  EXPECT_TRUE(mutex.LockWhile([] { return false; }, std::chrono::milliseconds(1))) << "nobody has it";
  mutex.unlock();
}

TEST(FairMutexTest, ExcludesOthers) {
  FairMutex mutex;
  int count = 0;
  const auto add = [&] {
    for (int i = 0; i < 1000; ++i) {
      const std::lock_guard lock(mutex);
      ++count;
    }
  };
  std::thread a(add), b(add);
  a.join();
  b.join();
  EXPECT_EQ(count, 2000);
}

}  // namespace
}  // namespace outrider
