// Any bytes as a kept cost curve: refused, or a curve that is sound everywhere and the same when written again.
#include <cmath>
#include <string>
#include <string_view>

#include "drafters/calibration.h"
#include "require.h"

namespace outrider {
namespace {

constexpr std::string_view kKey = "key";

void Check(std::string_view bytes) {
  const Result<CostCurve> curve = ParseCostCurve(bytes, kKey);
  if (!curve.ok()) return;
  for (const int rows : {1, 2, 7, 64, 4096}) {
    const double seconds = curve->Seconds(rows, 1000);
    Require(std::isfinite(seconds) && seconds > 0, "every width takes some time");
  }
  const Result<CostCurve> again = ParseCostCurve(DumpCostCurve(*curve, kKey), kKey);
  Require(again.ok() && again->calibration().size() == curve->calibration().size(), "what is written can be read");
  Require(!ParseCostCurve(DumpCostCurve(*curve, "other"), kKey).ok(), "a curve belongs to its machine and model");
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
