// What steps of a model, and tokens of a draft, take on this machine: measured in a few seconds.
#pragma once

#include <string>

#include "base/status.h"
#include "spec/cost_curve.h"
#include "spec/predict.h"

namespace outrider {

struct MeasuredCosts {
  CostCurve curve;        // of the target
  DraftModelCosts draft;  // zeros: there is no draft model
};

// Of GGUF files, one sequence at a time; `draft` "" = none. The models are gone when this returns.
Result<MeasuredCosts> MeasureCosts(const std::string& model, const std::string& draft, int threads, int gpu_layers);

}  // namespace outrider
