// RowValues: copies of values of the rows of a batch (logits, hidden states). For engines that compute one batch in
// several smaller ones, whose values would be lost with the next of these.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace outrider {

class RowValues {
 public:
  void Reset(int rows) {
    values_.clear();
    places_.assign(static_cast<size_t>(rows), {0, 0});
  }

  // Appends to the values of `row`. All values of one row must be added before those of another row.
  void Add(int row, std::span<const float> values) {
    auto& [begin, count] = places_[static_cast<size_t>(row)];
    if (count == 0) begin = values_.size();
    count += values.size();
    values_.insert(values_.end(), values.begin(), values.end());
  }

  std::span<const float> Of(int row) const {
    const auto [begin, count] = places_[static_cast<size_t>(row)];
    assert(count > 0 && "the row did not ask for them");
    return std::span<const float>(values_).subspan(begin, count);
  }

 private:
  std::vector<float> values_;
  std::vector<std::pair<size_t, size_t>> places_;  // by row: where in values_, and how many
};

}  // namespace outrider
