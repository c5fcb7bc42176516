// What steps of a model, and tokens of a draft, take on this machine: measured in a few seconds.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/model_options.h"
#include "spec/cost_curve.h"
#include "spec/predict.h"

namespace outrider {

struct MeasuredCosts {
  CostCurve curve;        // of the target
  DraftModelCosts draft;  // zeros: there is no draft model
};

// `draft` "" = none. The models are gone when this returns.
Result<MeasuredCosts> MeasureCosts(const ModelOptions& model, const ContextOptions& context, const std::string& draft);

}  // namespace outrider
