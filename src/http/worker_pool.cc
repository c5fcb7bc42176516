#include "http/worker_pool.h"

#include <system_error>

#include "base/log.h"

namespace outrider {

void WorkerPool::Add(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  const bool all_busy = idle_ < static_cast<int>(jobs_.size());
  if (all_busy && static_cast<int>(threads_.size()) < max_threads_) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error& error) {
      // The machine has no thread left: the job waits for one of ours.
      LogWarning("a worker thread could not be started: {}", error.what());
    }
  }
  added_.notify_one();
}

void WorkerPool::Join() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    added_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

int WorkerPool::threads() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(threads_.size());
}

void WorkerPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    added_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      try {
        job();
      } catch (const std::exception& error) {
        LogError("a worker's job failed: {}", error.what());
      } catch (...) {
        LogError("a worker's job failed");
      }
    }
    lock.lock();
  }
}

}  // namespace outrider
