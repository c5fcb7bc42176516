#include "scheduler/inbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <future>
#include <iterator>
#include <utility>

namespace outrider {

Inbox::Inbox(int max_waiting, int n_slots)
    : max_waiting_(static_cast<size_t>(max_waiting)),
      n_slots_(static_cast<size_t>(n_slots)),
      free_slots_(static_cast<size_t>(n_slots)) {}

Status Inbox::Add(PendingRequest request) {
  size_t waiting = 0;
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    if (stop_until_) return Unavailable("the server is shutting down");
    waiting = requests_.size() + taken_;
    full = waiting >= max_waiting_ + free_slots_;
    if (full) {
      ++refused_;
    } else {
      requests_.push_back(std::move(request));
    }
  }
  if (full) {
    return Status(
        StatusCode::kResourceExhausted,
        fmt::format("all {} slots are busy and {} requests wait already: try again later", n_slots_, waiting));
  }
  work_.notify_one();
  return {};
}

void Inbox::RunBetweenSteps(const std::function<void()>& command) {
  std::promise<void> done;
  {
    const std::lock_guard direct(direct_);
    bool stepping = false;
    {
      const std::lock_guard lock(mutex_);
      stepping = stepping_;
      if (stepping) {
        commands_.push_back([&] {
          try {
            command();
            done.set_value();
          } catch (...) {  // for want of memory, say: costs its caller something, and the thread that steps nothing
            done.set_exception(std::current_exception());
          }
        });
      }
    }
    if (!stepping) return command();
  }
  work_.notify_one();
  done.get_future().get();
}

void Inbox::Stop(TimePoint until) {
  {
    const std::lock_guard lock(mutex_);
    stop_until_ = std::min(stop_until_.value_or(TimePoint::max()), until);
  }
  work_.notify_one();
}

void Inbox::WaitUntilStopped() {
  std::unique_lock lock(mutex_);
  stopped_.wait(lock, [this] { return !stepping_; });
}

size_t Inbox::waiting() const {
  const std::lock_guard lock(mutex_);
  return requests_.size() + taken_;
}

uint64_t Inbox::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void Inbox::RunCommands() {
  std::deque<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const auto& command : commands) command();
}

std::vector<PendingRequest> Inbox::TakeAll() {
  const std::lock_guard lock(mutex_);
  std::vector<PendingRequest> all(std::make_move_iterator(requests_.begin()), std::make_move_iterator(requests_.end()));
  requests_.clear();
  taken_ = all.size();
  return all;
}

void Inbox::PutBack(std::vector<PendingRequest> requests, int free_slots) {
  const std::lock_guard lock(mutex_);
  requests_.insert(requests_.begin(), std::make_move_iterator(requests.begin()),
                   std::make_move_iterator(requests.end()));
  taken_ = 0;
  free_slots_ = static_cast<size_t>(free_slots);
}

void Inbox::SetFreeSlots(int free_slots) {
  const std::lock_guard lock(mutex_);
  free_slots_ = static_cast<size_t>(free_slots);
}

std::optional<TimePoint> Inbox::stop_until() const {
  const std::lock_guard lock(mutex_);
  return stop_until_;
}

void Inbox::BeginStepping() {
  const std::lock_guard direct(direct_);
  const std::lock_guard lock(mutex_);
  stepping_ = true;
}

bool Inbox::WaitForWork() {
  std::unique_lock lock(mutex_);
  work_.wait(lock, [this] { return stop_until_ || !requests_.empty() || !commands_.empty(); });
  return !requests_.empty() || !commands_.empty();
}

void Inbox::EndStepping() {
  // Runs commands that arrived after the last step too, because their callers wait for them.
  for (;;) {
    RunCommands();
    const std::lock_guard lock(mutex_);
    if (!commands_.empty()) continue;
    stepping_ = false;
    stopped_.notify_all();
    return;
  }
}

}  // namespace outrider
