// StatusBoard: what the scheduler counted and what its slots hold, as of the last step. Thread-safe: the stepping
// thread publishes, any thread reads.
#pragma once

#include <mutex>
#include <vector>

#include "scheduler/stats.h"

namespace outrider {

class StatusBoard {
 public:
  void Publish(const SchedulerStats& stats, const std::vector<SlotStatus>& slots) {
    const std::lock_guard lock(mutex_);
    stats_ = stats;
    slots_ = slots;
  }

  SchedulerStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  std::vector<SlotStatus> slots() const {
    const std::lock_guard lock(mutex_);
    return slots_;
  }

 private:
  mutable std::mutex mutex_;
  SchedulerStats stats_;
  std::vector<SlotStatus> slots_;
};

}  // namespace outrider
