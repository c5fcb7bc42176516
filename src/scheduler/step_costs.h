// StepCosts: what the scheduler believes about the time of its next steps, for people who watch it. Plain data.
#pragma once

#include <vector>

#include "spec/cost_curve.h"

namespace outrider {

struct StepCost {
  int rows;
  double seconds;  // expected
  double spread;   // the share by which that may be wrong compared with one row: about one standard deviation
};

struct StepCosts {
  std::vector<StepCost> curve;  // ascending in rows; widths up to kMaxShownRows
  int context = 0;              // mean length of the sequences that it is for, in tokens
  int last_rows = 0;            // rows of the last step; 0 if there was none
};

inline constexpr int kMaxShownRows = 32;

// The curve of steps whose sequences are about `context` tokens long.
StepCosts ListStepCosts(const CostCurve& curve, int context);

}  // namespace outrider
