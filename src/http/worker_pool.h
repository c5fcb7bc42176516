// WorkerPool: a bounded number of threads that run jobs in the order in which they came. A thread is started when a job
// finds all of them busy, up to the limit; beyond it jobs wait. A job that throws costs nothing but itself.
//
// Add may be called from any thread. Join lets the jobs that wait run, and returns when all have ended; after it, Add
// must not be called. The destructor joins.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace outrider {

class WorkerPool {
 public:
  explicit WorkerPool(int max_threads) : max_threads_(max_threads) {}
  ~WorkerPool() { Join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Add(std::function<void()> job);
  void Join();

  int threads() const;  // started so far

 private:
  void Work();

  const int max_threads_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  int idle_ = 0;
  bool ended_ = false;
};

}  // namespace outrider
