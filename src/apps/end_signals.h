// EndSignals: calls a function for each SIGINT and SIGTERM, on a thread of its own. Create it before any other thread,
// so that all of them inherit that the signals are blocked.
#pragma once

#include <signal.h>

#include <functional>
#include <mutex>
#include <thread>

namespace outrider {

class EndSignals {
 public:
  // `handler` gets the signal and the number of signals so far, which begins with 1. A process has one object of this
  // class, which is never destroyed before the process ends.
  explicit EndSignals(std::function<void(int signal, int count)> handler);

  // Replaces the handler; the count begins again with 1.
  void SetHandler(std::function<void(int signal, int count)> handler);

 private:
  std::mutex mutex_;
  std::function<void(int, int)> handler_;  // guarded by mutex_, held while it runs
  int count_ = 0;
};

}  // namespace outrider
