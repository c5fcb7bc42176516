// PreparationLane: the one thread in which large requests are parsed, tokenised and checked, so that many of them at
// once cost the others no more than one does: one part of one core, and the memory of one parsed body. The thread has a
// low priority, below that of the threads that compute. Small requests do not come into that thread; whoever answers
// them prepares them too, but only some threads at a time, on half of the cores: small requests can take nearly a tenth
// of a second, and there are many threads that answer.
//
// Of the requests that wait, large and small ones apart, the smallest comes first. Run may be called from any thread;
// it waits, without computing anything, until its job has run or nobody wants it any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/status.h"

namespace outrider {

class PreparationLane {
 public:
  static constexpr size_t kSmallBytes = 64 << 10;

  // `patience`: how long a request may wait for its turn.
  explicit PreparationLane(Duration patience, const Clock& clock = Clock::Real(), int small_at_once = HalfOfTheCores());
  ~PreparationLane();  // no Run may be under way
  PreparationLane(const PreparationLane&) = delete;
  PreparationLane& operator=(const PreparationLane&) = delete;

  // Runs a job of more than kSmallBytes on the lane's thread, a smaller one on the calling thread. What the job throws
  // is thrown to the caller. kUnavailable if the client went away or the time ran out before its turn.
  Status Run(size_t request_bytes, const std::function<bool()>& client_is_there, const std::function<void()>& job);

  // Much memory has been freed: what the allocator kept is given back to the system soon.
  void GiveMemoryBack();

 private:
  struct Waiting {
    size_t bytes;
    const std::function<void()>* job;
    bool running = false;
    bool done = false;
    std::exception_ptr thrown = nullptr;
  };

  static int HalfOfTheCores();
  void RunOnCaller(std::unique_lock<std::mutex>& lock, Waiting* first);
  void Work();

  const Duration patience_;
  const Clock& clock_;
  const int small_at_once_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::list<Waiting*> waiting_;        // ascending in size
  std::list<Waiting*> small_waiting_;  // ascending in size
  int small_running_ = 0;
  bool give_memory_back_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace outrider
