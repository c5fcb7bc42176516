// Inbox: what other threads hand to the thread that steps: requests that wait for a slot, commands to run between two
// steps, and the order to stop.
//
// Thread-safe. Of its two locks, mutex_ guards the queues and is held for a few instructions only: nothing is computed,
// logged or decoded under it. direct_ is held while a command runs on its caller's thread, which may take long; only
// other callers of RunBetweenSteps and BeginStepping wait for it.
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
  // `max_waiting`: how many requests may wait, in addition to those for which there is a free slot.
  Inbox(int max_waiting, int n_slots);

  // --- Any thread ---

  // kUnavailable while the server stops, kResourceExhausted if too many wait.
  Status Add(PendingRequest request);

  // Runs `command` between two steps and waits for it. If no thread is stepping, it runs at once, on the caller's
  // thread. What it throws is thrown to the caller.
  void RunBetweenSteps(const std::function<void()>& command);

  // Refuses new requests from now on. Those that were accepted may run until `until`; a second call can only make this
  // earlier.
  void Stop(TimePoint until);
  void WaitUntilStopped();  // until no thread is stepping

  size_t waiting() const;
  uint64_t refused() const;

  // --- The stepping thread ---

  void RunCommands();

  // All waiting requests, oldest first. The caller must return those that got no slot with PutBack before the next
  // call. Until then all of them still count as waiting.
  std::vector<PendingRequest> TakeAll();
  // `free_slots`: after the others have begun.
  void PutBack(std::vector<PendingRequest> requests, int free_slots);
  void SetFreeSlots(int free_slots);

  // If the server stops: when running requests must end.
  std::optional<TimePoint> stop_until() const;

  // A thread begins and ends to step. In between, WaitForWork blocks until there is something to do; it returns false
  // if the server stops and nothing is left to do.
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
  size_t taken_ = 0;  // requests taken by TakeAll, until PutBack
  std::deque<std::function<void()>> commands_;
  std::optional<TimePoint> stop_until_;
  bool stepping_ = false;
  size_t free_slots_;
  uint64_t refused_ = 0;
};

}  // namespace outrider
