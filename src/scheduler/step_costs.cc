#include "scheduler/step_costs.h"

namespace outrider {

StepCosts ListStepCosts(const CostCurve& curve, int context) {
  StepCosts costs;
  costs.context = context;
  for (int rows = 1; rows <= kMaxShownRows; ++rows) {
    costs.curve.push_back({rows, curve.Seconds(rows, context), curve.Uncertainty(rows, 1, context)});
  }
  return costs;
}

}  // namespace outrider
