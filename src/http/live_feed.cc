#include "http/live_feed.h"

namespace outrider {

std::shared_ptr<void> LiveFeed::Enter() {
  const std::lock_guard lock(mutex_);
  if (watchers_ >= kMaxWatchers || stopping_) return nullptr;
  ++watchers_;
  return {this, [this](void*) {
            const std::lock_guard leaving(mutex_);
            --watchers_;
          }};
}

std::string LiveFeed::Snapshot(const Viewer& viewer) {
  const std::lock_guard lock(making_);
  const TimePoint now = clock_.Now();
  std::erase_if(latest_, [&](const auto& entry) { return now - entry.second.when > kInterval / 2; });
  auto found = latest_.find(viewer);
  if (found == latest_.end()) found = latest_.emplace(viewer, Made{now, make_snapshot_(viewer)}).first;
  return found->second.snapshot;
}

bool LiveFeed::WaitForNext() {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_for(lock, kInterval, [this] { return stopping_; });
}

void LiveFeed::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  stopped_.notify_all();
}

}  // namespace outrider
