#include "http/preparation_lane.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/freed_memory.h"
#include "base/memory_reserve.h"

namespace outrider {
namespace {

// Beside threads of priority 0 this one gets a tenth of a core, and on an idle machine a whole one. Lower ones would
// get so little that they keep what they lock, such as the chat template, for too long.
constexpr int kNiceness = 10;
constexpr std::chrono::milliseconds kDisconnectCheck{20};
constexpr std::chrono::milliseconds kMuchWork{5};  // what takes longer has probably needed much memory, too
constexpr std::chrono::seconds kMemoryDelay{1};    // what is freed in the meantime is given back together

}  // namespace

PreparationLane::PreparationLane(Duration patience, const Clock& clock, int small_at_once)
    : patience_(patience), clock_(clock), small_at_once_(small_at_once), thread_([this] { Work(); }) {}

int PreparationLane::HalfOfTheCores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency() / 2));
}

PreparationLane::~PreparationLane() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status PreparationLane::Run(size_t request_bytes, const std::function<bool()>& client_is_there,
                            const std::function<void()>& job) {
  const bool small = request_bytes <= kSmallBytes;
  Waiting mine{request_bytes, &job};
  const TimePoint deadline = Later(clock_.Now(), patience_);
  std::unique_lock lock(mutex_);
  std::list<Waiting*>& line = small ? small_waiting_ : waiting_;
  line.insert(std::upper_bound(line.begin(), line.end(), request_bytes,
                               [](size_t bytes, const Waiting* other) { return bytes < other->bytes; }),
              &mine);
  if (!small) changed_.notify_all();
  const auto is_served = [&] {
    return small ? small_running_ < small_at_once_ && small_waiting_.front() == &mine : mine.done;
  };
  while (!changed_.wait_for(lock, kDisconnectCheck, is_served)) {
    if (mine.running) continue;  // it refers to what is on the caller's stack
    const bool late = clock_.Now() >= deadline;
    if (!late && client_is_there()) continue;
    line.remove(&mine);
    changed_.notify_all();  // it may have been the next one
    return Unavailable(late ? "too many requests wait to be read: try again later" : "the client went away");
  }
  if (small) RunOnCaller(lock, &mine);
  if (mine.thrown) std::rethrow_exception(mine.thrown);
  return {};
}

// Runs the job of the first small request that waits, on its caller's thread.
void PreparationLane::RunOnCaller(std::unique_lock<std::mutex>& lock, Waiting* first) {
  const TimePoint start = clock_.Now();
  small_waiting_.pop_front();
  ++small_running_;
  const auto wake_next = [this] {
    if (!small_waiting_.empty() && small_running_ < small_at_once_) changed_.notify_all();
  };
  wake_next();
  lock.unlock();
  try {
    (*first->job)();
  } catch (...) {
    first->thrown = std::current_exception();
  }
  lock.lock();
  --small_running_;
  wake_next();
  if (clock_.Now() - start <= kMuchWork) return;
  give_memory_back_ = true;
  changed_.notify_all();
}

void PreparationLane::GiveMemoryBack() {
  const std::lock_guard lock(mutex_);
  give_memory_back_ = true;
  changed_.notify_all();
}

void PreparationLane::Work() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);  // on Linux, of this thread only
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return ended_ || !waiting_.empty(); };
  while (true) {
    KeepMemoryReserve();
    changed_.wait(lock, [&] { return has_work() || give_memory_back_; });
    if (give_memory_back_ && !changed_.wait_for(lock, kMemoryDelay, has_work)) {
      give_memory_back_ = false;
      lock.unlock();
      GiveFreedMemoryBack();
      lock.lock();
      continue;
    }
    if (waiting_.empty()) {
      if (ended_) return;
      continue;
    }
    Waiting& next = *waiting_.front();
    waiting_.pop_front();
    next.running = true;
    lock.unlock();
    try {
      (*next.job)();
    } catch (...) {
      next.thrown = std::current_exception();
    }
    lock.lock();
    next.done = true;
    give_memory_back_ = true;
    changed_.notify_all();
  }
}

}  // namespace outrider
