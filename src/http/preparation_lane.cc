#include "http/preparation_lane.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

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

PreparationLane::PreparationLane(Duration patience, const Clock& clock)
    : patience_(patience), clock_(clock), thread_([this] { Work(); }) {}

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
  if (request_bytes <= kSmallBytes) {
    const TimePoint start = clock_.Now();
    job();
    if (clock_.Now() - start > kMuchWork) GiveMemoryBack();
    return {};
  }
  Waiting mine{request_bytes, &job};
  const TimePoint deadline = Later(clock_.Now(), patience_);
  std::unique_lock lock(mutex_);
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), request_bytes,
                                   [](size_t bytes, const Waiting* other) { return bytes < other->bytes; }),
                  &mine);
  changed_.notify_all();
  while (!changed_.wait_for(lock, kDisconnectCheck, [&] { return mine.done; })) {
    if (mine.running) continue;  // it refers to what is on the caller's stack
    const bool late = clock_.Now() >= deadline;
    if (!late && client_is_there()) continue;
    waiting_.remove(&mine);
    return Unavailable(late ? "too many large requests wait: try again later" : "the client went away");
  }
  if (mine.thrown) std::rethrow_exception(mine.thrown);
  return {};
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
      malloc_trim(0);
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
