// DrawBudget: what drawing tokens may cost the other requests. A grammar can make one draw take a second, and all
// requests wait for it, because tokens are drawn between two decodes. While there are others, the sequences whose draws
// are expensive therefore take part in some steps only, one of them at a time, so that together they take at most a
// tenth of the time. Their text does not change.
//
// Belongs to the stepping thread.
#pragma once

#include <vector>

#include "base/clock.h"
#include "scheduler/sequence.h"

namespace outrider {

class DrawBudget {
 public:
  // Before a step: sets Sequence::resting of all. At least one sequence that is busy does not rest.
  void Choose(std::vector<Sequence>& sequences, TimePoint now) const;

  // After a step: drawing the tokens of `sequence` took `draw`, and decoding the whole step took `decode`.
  void Observe(Sequence& sequence, Duration draw, Duration decode, TimePoint now);

 private:
  TimePoint next_expensive_{};  // when another expensive draw may begin
};

}  // namespace outrider
