// Inbox: what other threads hand to the thread that steps: requests that wait for a slot, commands to run between two
// steps, and the order to stop.
//
// Thread-safe. Its lock is held for a few instructions only: nothing is computed, logged or decoded under it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/sequence.h"

namespace outrider {

class Inbox {
 public:
  // `max_waiting`: requests that may wait beyond those that free slots will take before the next step.
  Inbox(int max_waiting, int n_slots);

  // --- Any thread ---

  // kUnavailable while the server stops, kResourceExhausted if too many wait.
  Status Add(PendingRequest request);

  // Runs `command` between two steps and waits for it; runs it at once where nobody steps.
  void RunBetweenSteps(const std::function<void()>& command);

  // No more requests. Those that were accepted may run until `until`; a second call can only shorten that.
  void Stop(TimePoint until);
  void WaitUntilStopped();  // until nobody steps

  size_t waiting() const;
  uint64_t refused() const;

  // --- The stepping thread ---

  void RunCommands();

  // All requests that wait, oldest first. Those that got no slot come back with PutBack before the next call; until
  // then they still count as waiting.
  std::vector<PendingRequest> TakeAll();
  // `free_slots`: after the others have begun.
  void PutBack(std::vector<PendingRequest> requests, int free_slots);
  void SetFreeSlots(int free_slots);

  // When the requests that run must end, if the server stops.
  std::optional<TimePoint> stop_until() const;

  // Steps begin and end. WaitForWork blocks until there is something to do; false: the server stops and nothing is
  // left.
  void BeginStepping();
  bool WaitForWork();
  void EndStepping();

 private:
  const size_t max_waiting_, n_slots_;

  std::mutex direct_;  // held by a command that runs on its caller's thread, and to begin stepping; taken before mutex_

  mutable std::mutex mutex_;         // guards what follows
  std::condition_variable work_;     // there is something to do
  std::condition_variable stopped_;  // stepping_ became false
  std::deque<PendingRequest> requests_;
  size_t taken_ = 0;  // by TakeAll, not yet put back or begun
  std::deque<std::function<void()>> commands_;
  std::optional<TimePoint> stop_until_;
  bool stepping_ = false;
  size_t free_slots_;
  uint64_t refused_ = 0;
};

}  // namespace outrider
