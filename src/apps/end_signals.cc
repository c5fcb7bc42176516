#include "apps/end_signals.h"

#include <pthread.h>

#include <utility>

namespace outrider {

EndSignals::EndSignals(std::function<void(int, int)> handler) : handler_(std::move(handler)) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  std::thread([this, signals] {
    while (true) {
      int number = 0;
      sigwait(&signals, &number);
      const std::lock_guard lock(mutex_);
      handler_(number, ++count_);
    }
  }).detach();
}

void EndSignals::SetHandler(std::function<void(int, int)> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  count_ = 0;
}

}  // namespace outrider
