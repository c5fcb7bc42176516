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

std::string LiveFeed::Snapshot() {
  const std::lock_guard lock(making_);
  const TimePoint now = clock_.Now();
  if (!has_snapshot_ || now - made_ > kInterval / 2) {
    snapshot_ = make_snapshot_();
    made_ = now;
    has_snapshot_ = true;
  }
  return snapshot_;
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
