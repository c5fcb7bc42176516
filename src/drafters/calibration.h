// Calibration: measures an engine's cost curve, and keeps it on disk for the next start.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "spec/cost_curve.h"

namespace outrider {

struct Calibration {
  CostCurve curve;
  bool steady = false;  // repeated measurements agreed: nothing else kept the machine busy
};

// Decodes batches of many widths in turn, repeats this for about `budget`, and takes the fastest time of each width.
// Sequence 0 of the engine must be idle; its memory is cleared. `filler` is any token of the vocabulary.
Result<Calibration> MeasureCostCurve(Engine& engine, Token filler, Duration budget, const Clock& clock = Clock::Real());

// A curve as text and back. kInvalidArgument for anything that DumpCostCurve did not write with the same key.
std::string DumpCostCurve(const CostCurve& curve, std::string_view key);
Result<CostCurve> ParseCostCurve(std::string_view text, std::string_view key);

// The curve kept in `path` for `key` (model, build, machine, settings), or a new measurement, which is kept there if it
// was steady. An unusable or unwritable file is no error: the curve is only measured again next time.
Result<CostCurve> CalibratedCostCurve(Engine& engine, Token filler, Duration budget, const std::string& path,
                                      std::string_view key, bool measure_anew);

}  // namespace outrider
