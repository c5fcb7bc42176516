// LiveFeed: the snapshots that dashboards are sent, some times a second, and how many may watch at once.
//
// Nothing is computed while nobody watches. Watchers who may see the same share one snapshot: the first who asks after
// it has become old makes the next one, so that many watchers cost the scheduler as much as one. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "api/info.h"
#include "base/clock.h"

namespace outrider {

class LiveFeed {
 public:
  static constexpr int kMaxWatchers = 16;
  static constexpr std::chrono::milliseconds kInterval{250};

  // `make_snapshot` returns the JSON of a snapshot. It is called by one watcher's thread at a time.
  explicit LiveFeed(std::function<std::string(const Viewer&)> make_snapshot, const Clock& clock = Clock::Real())
      : make_snapshot_(std::move(make_snapshot)), clock_(clock) {}

  // A place among the watchers until the last copy of the result is destroyed; null if there are too many.
  std::shared_ptr<void> Enter();

  // The snapshot of now: at most kInterval / 2 old.
  std::string Snapshot(const Viewer& viewer);

  // Waits until the next snapshot is due; false if the server stops.
  bool WaitForNext();
  void Stop();

 private:
  struct Made {
    TimePoint when;
    std::string snapshot;
  };

  const std::function<std::string(const Viewer&)> make_snapshot_;
  const Clock& clock_;
  std::mutex making_;              // held while a snapshot is made
  std::map<Viewer, Made> latest_;  // none that is old

  std::mutex mutex_;  // guards what follows
  std::condition_variable stopped_;
  int watchers_ = 0;
  bool stopping_ = false;
};

}  // namespace outrider
