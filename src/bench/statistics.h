// The statistics of a benchmark: what a few noisy runs say about a ratio of speeds, and how sure that is.
//
// Two variants are compared on the same prompts, run by run in turn, so what is compared are pairs: the machine's mood
// of that minute is in both. A ratio is summed up by its median, since one run in which the machine was busy elsewhere
// must not decide; its uncertainty by resampling pairs.
//
// Pure; the same input gives the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace outrider {

// Linear between the two nearest values; `share` 0 is the least, 1 the greatest. NaN if there are none.
double Quantile(std::vector<double> values, double share);

struct Summary {
  size_t count = 0;
  double median = 0, p10 = 0, p90 = 0;
};
Summary Summarise(const std::vector<double>& values);

// From `low` to `high` with 95 % confidence.
struct Interval {
  double low = 0, high = 0;
  bool holds(double value) const { return low <= value && value <= high; }
};

// Of the median of `values`: percentile bootstrap over groups, so that several runs of one prompt are not taken for
// several prompts; a little wider the fewer groups there are (Hesterberg's expanded percentiles). `groups` says which
// group each value is in, and is as long; empty = each its own. NaN of fewer than six groups.
Interval MedianInterval(std::span<const double> values, std::span<const int> groups, uint64_t seed = 1);

// How many drafts were accepted to each length, and how often each place was right, given that those before were.
class AcceptanceByPlace {
 public:
  void Observe(int drafted, int accepted);
  void Add(const AcceptanceByPlace& other);

  // By length 0, 1, ….
  const std::vector<uint64_t>& lengths() const { return lengths_; }

  // P(right at `place` | all before right, and drafted), and how many times that was asked.
  double Chance(size_t place) const;
  uint64_t Asked(size_t place) const { return place < asked_.size() ? asked_[place] : 0; }

 private:
  std::vector<uint64_t> lengths_, asked_, right_;
};

}  // namespace outrider
