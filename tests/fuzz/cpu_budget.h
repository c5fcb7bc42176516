// Requires that what a fuzz target does takes no longer than it may, in CPU time of its thread, so that a busy machine
// does not matter. docs/SECURITY.md promises 100 ms in a release build; coverage and the sanitizers make code about ten
// times slower.
#pragma once

#include <ctime>

#include "require.h"

namespace outrider {

class CpuBudget {
 public:
  CpuBudget() : start_(Seconds()) {}
  ~CpuBudget() {
    Require(Seconds() - start_ < kPromised * kSlowdown, "what is within the limits takes less than 100 ms");
  }
  CpuBudget(const CpuBudget&) = delete;
  CpuBudget& operator=(const CpuBudget&) = delete;

 private:
  static constexpr double kPromised = 0.1, kSlowdown = 10;

  static double Seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  const double start_;
};

}  // namespace outrider
