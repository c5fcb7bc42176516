// RecentMean: the mean of the last few dozen values, known from the first one on.
#pragma once

#include <algorithm>

namespace outrider {

class RecentMean {
 public:
  explicit RecentMean(double window = 32) : window_(window) {}

  void Observe(double value) {
    count_ = std::min(count_ + 1, window_);
    mean_ += (value - mean_) / count_;
  }
  bool known() const { return count_ > 0; }
  double value() const { return mean_; }

 private:
  double window_;
  double mean_ = 0, count_ = 0;
};

}  // namespace outrider
