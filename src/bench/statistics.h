// The statistics of a benchmark: what a few noisy runs say about a ratio of speeds, and with which confidence.
//
// Two variants are compared on the same prompts, run by run in turn, so the values are pairs: what else the machine did
// in that minute affects both of a pair. A ratio is summarised by its median, because one run in which the machine was
// busy with something else must not decide; its uncertainty is found by resampling pairs.
//
// The same input gives the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outrider {

// Linear between the two nearest values; `share` 0 is the smallest, 1 the largest. NaN if there are none.
double Quantile(std::vector<double> values, double share);

struct Summary {
  size_t count = 0;
  double median = 0, p10 = 0, p90 = 0;
};
Summary Summarise(const std::vector<double>& values);

// From `low` to `high` with 95 % confidence.
struct Interval {
  double low = 0, high = 0;
  bool Contains(double value) const { return low <= value && value <= high; }
};

// Of the median of `values`: a percentile bootstrap over groups, so that several runs of one prompt do not count as
// several prompts; the interval is widened when there are few groups (Hesterberg's expanded percentiles). `groups` has
// the group of each value; empty = each value is a group of its own. NaN for fewer than six groups.
Interval MedianInterval(std::span<const double> values, std::span<const int> groups, uint64_t seed = 1);

// How many drafts were accepted up to each length, and how often the token at each position was accepted, given that
// those before it were.
class AcceptanceByPosition {
 public:
  void Observe(int drafted, int accepted);
  void Add(const AcceptanceByPosition& other);

  // Number of drafts by accepted length 0, 1, ….
  const std::vector<uint64_t>& lengths() const { return lengths_; }

  // P(the token at `position` is accepted | it was drafted and all before it were accepted), and from how many drafts
  // that is known. Positions begin with 0.
  double Probability(size_t position) const;
  uint64_t Observations(size_t position) const { return position < observed_.size() ? observed_[position] : 0; }

 private:
  std::vector<uint64_t> lengths_, observed_, accepted_;
};

}  // namespace outrider
