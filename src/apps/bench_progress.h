// BenchProgress: what a running benchmark prints about how far it is.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "bench/record.h"

namespace outrider {

class BenchProgress {
 public:
  // `terminal`: one line that is replaced again and again, with a bar; else a new line for each 5 % of the requests.
  // `clock` outlives this object.
  BenchProgress(size_t total, bool terminal, const Clock& clock)
      : total_(total), terminal_(terminal), clock_(clock), start_(clock.Now()) {}

  // Counts a request that is done, and returns what to print; "" = nothing.
  std::string Add(const BenchRecord& record);

  // What to print when no more will come: removes the line from the terminal.
  std::string End() const;

 private:
  const size_t total_;
  const bool terminal_;
  const Clock& clock_;
  const TimePoint start_;
  size_t done_ = 0;
};

}  // namespace outrider
