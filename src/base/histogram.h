// Histogram with fixed bounds, in the shape Prometheus wants: observations at or below each bound, and their sum. A
// plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace outrider {

class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds)
      : bounds_(std::move(upper_bounds)), counts_(bounds_.size() + 1) {}

  void Observe(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<uint64_t>& counts() const { return counts_; }  // per bucket, the last one past all bounds
  double sum() const { return sum_; }
  uint64_t count() const {
    uint64_t total = 0;
    for (uint64_t n : counts_) total += n;
    return total;
  }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

}  // namespace outrider
