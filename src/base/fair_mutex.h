// FairMutex: a mutex whose waiters get it in the order in which they came, so that one who takes it again and again
// does not keep the others out. Use std::lock_guard.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

namespace outrider {

class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = Queue();
    turn_.wait(lock, [&] { return line_.front() == ticket; });
  }

  // Like lock(), but asks `wanted` after every `interval` of waiting, and gives up when the answer is no. Returns
  // whether the caller has the mutex.
  template <typename Wanted>
  bool LockWhile(const Wanted& wanted, std::chrono::milliseconds interval) {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = Queue();
    while (!turn_.wait_for(lock, interval, [&] { return line_.front() == ticket; })) {
      lock.unlock();
      const bool still_wanted = wanted();
      lock.lock();
      if (still_wanted) continue;
      std::erase(line_, ticket);
      turn_.notify_all();
      return false;
    }
    return true;
  }

  void unlock() {
    const std::lock_guard lock(mutex_);
    line_.pop_front();
    turn_.notify_all();
  }

 private:
  uint64_t Queue() {
    line_.push_back(next_ticket_);
    return next_ticket_++;
  }

  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ticket_ = 0;
  std::deque<uint64_t> line_;  // whoever is at its front has the mutex
};

}  // namespace outrider
