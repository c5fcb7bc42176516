// FairMutex: a mutex whose waiters get it in the order in which they came, so that one who takes it again and again
// does not keep the others out. For work that takes milliseconds; use std::lock_guard.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace outrider {

class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = next_ticket_++;
    turn_.wait(lock, [&] { return serving_ == ticket; });
  }

  void unlock() {
    const std::lock_guard lock(mutex_);
    ++serving_;
    turn_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
};

}  // namespace outrider
