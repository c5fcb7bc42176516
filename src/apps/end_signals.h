// SIGINT and SIGTERM as calls on a thread of their own. Create it before any other thread: they inherit that the
// signals are blocked.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace outrider {

class EndSignals {
 public:
  // `handler` gets the signal and how many have come, from 1 on. One at a time exists in a process; it is never
  // destroyed before the process ends.
  explicit EndSignals(std::function<void(int signal, int count)> handler);

  // From now on this one is called; the count begins anew.
  void SetHandler(std::function<void(int signal, int count)> handler);

 private:
  std::mutex mutex_;
  std::function<void(int, int)> handler_;  // guarded by mutex_, held while it runs
  int count_ = 0;
};

}  // namespace outrider
