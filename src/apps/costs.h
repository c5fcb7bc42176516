// The time of a model's steps, and of a draft model's tokens, on this machine: measured in a few seconds.
#pragma once

#include <string>

#include "base/status.h"
#include "spec/cost_curve.h"
#include "spec/predict.h"

namespace outrider {

struct MeasuredCosts {
  CostCurve curve;        // of the target
  DraftModelCosts draft;  // zeros = there is no draft model
};

// `model` and `draft` are GGUF files, `draft` "" = none; one sequence at a time. Loads them, and frees them before it
// returns.
Result<MeasuredCosts> MeasureCosts(const std::string& model, const std::string& draft, int threads, int gpu_layers);

}  // namespace outrider
