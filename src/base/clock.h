// Time as a parameter. Code that measures or waits takes a Clock, so its tests never sleep.
#pragma once

#include <chrono>

namespace outrider {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;

  static const Clock& Real();  // the machine's steady clock; never destroyed
};

// Moves only by Advance. Not thread-safe.
class ManualClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

inline double Milliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// `from` + `by`, or the end of time where that overflows (limits may be Duration::max()).
inline TimePoint Later(TimePoint from, Duration by) {
  return by > TimePoint::max() - from ? TimePoint::max() : from + by;
}

}  // namespace outrider
