#include "drafters/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"

namespace outrider {
namespace {

// The order in which widths are measured. The widths that matter most come first, because with a large model the time
// may only be enough for the first few.
constexpr std::array kWidths = {1, 4, 2, 8, 3, 6, 16, 5, 12, 32, 7, 10, 24, 9, 14, 20, 48, 64};
constexpr size_t kMinWidths = 4;
constexpr int kMinRounds = 3, kMaxRounds = 16;

// Quick steps are measured several times in a row, because a GPU replays a step that it has computed twice. The first
// step may be slow even then, so it may take longer and still count as quick.
constexpr int kInARow = 3;
constexpr double kQuickSeconds = 0.01;
constexpr double kQuickFirstSeconds = 0.05;
constexpr size_t kMaxFileBytes = 1 << 16;

// The two fastest times seen for a width.
struct Fastest {
  int rows;
  double seconds = std::numeric_limits<double>::infinity();
  double second = seconds;
  double run = seconds;  // of kInARow steps in a row, after one of another width

  void Observe(double time) {
    second = std::min(second, std::max(seconds, time));
    seconds = std::min(seconds, time);
  }
};

Result<double> TimeOnce(Engine& engine, Token filler, int rows, const Clock& clock) {
  engine.TruncateTo(0, 0);
  Batch batch;
  for (Pos pos = 0; pos < rows; ++pos) batch.Add({filler, pos, 0, true});
  const TimePoint start = clock.Now();
  Status status = engine.Decode(batch);
  const double seconds = Milliseconds(clock.Now() - start) / 1000;
  engine.TruncateTo(0, 0);
  if (!status.ok()) return status;
  return std::max(seconds, 1e-9);
}

Status TimeInARow(Engine& engine, Token filler, Fastest& width, const Clock& clock) {
  double run = 0;
  int steps = 0;
  do {
    const auto seconds = TimeOnce(engine, filler, width.rows, clock);
    if (!seconds.ok()) return seconds.status();
    width.Observe(*seconds);
    run += *seconds;
    ++steps;
  } while (steps < kInARow && (width.seconds < kQuickSeconds || (steps == 1 && run < kQuickFirstSeconds)));
  if (steps == kInARow) width.run = std::min(width.run, run);
  return {};
}

void Keep(const CostCurve& curve, const std::string& path, std::string_view key) {
  if (path.empty()) return;
  const Status status = KeepFile(path, DumpCostCurve(curve, key));
  if (!status.ok()) LogDebug("the cost curve is not kept: {}", status.message());
}

}  // namespace

Result<Calibration> MeasureCostCurve(Engine& engine, Token filler, Duration budget, const Clock& clock) {
  const EngineInfo& info = engine.info();
  const int max_rows = std::min({info.max_outputs, info.max_batch, static_cast<int>(info.sequence_length)});
  std::vector<Fastest> widths;
  for (int rows : kWidths) {
    if (rows <= max_rows) widths.push_back({rows});
  }
  const TimePoint end = clock.Now() + budget;
  size_t measured = 0;
  // The first round ends when the time is up. The widths that it reached are measured again at least twice, and more
  // often while there is time.
  for (int round = 0; round < kMinRounds || (clock.Now() < end && round < kMaxRounds); ++round) {
    for (size_t i = 0; i < (round == 0 ? widths.size() : measured); ++i) {
      if (round == 0 && i >= kMinWidths && clock.Now() >= end) break;
      if (Status status = TimeInARow(engine, filler, widths[i], clock); !status.ok()) return status;
      if (round == 0) measured = i + 1;
    }
  }
  widths.resize(measured);
  std::sort(widths.begin(), widths.end(), [](const Fastest& a, const Fastest& b) { return a.rows < b.rows; });
  std::vector<CostPoint> points;
  double switch_seconds = 0;
  int quick = 0;
  for (const Fastest& width : widths) {
    points.push_back({width.rows, width.seconds});
    if (std::isinf(width.run)) continue;
    switch_seconds += (width.run - kInARow * width.seconds - switch_seconds) / ++quick;
  }
  const auto agreeing =
      std::count_if(widths.begin(), widths.end(), [](const Fastest& w) { return w.second <= 1.3 * w.seconds; });
  return Calibration{CostCurve(std::move(points), switch_seconds),
                     agreeing * 5 >= static_cast<std::ptrdiff_t>(widths.size()) * 4};
}

std::string DumpCostCurve(const CostCurve& curve, std::string_view key) {
  Json points = Json::array();
  for (const CostPoint& point : curve.calibration()) points.push_back({point.rows, point.seconds});
  return DumpJson({{"key", key}, {"points", std::move(points)}, {"switch", curve.SwitchSeconds()}}) + "\n";
}

Result<CostCurve> ParseCostCurve(std::string_view text, std::string_view key) {
  const Status unusable = InvalidArgument("not a cost curve for this model and machine");
  if (text.size() > kMaxFileBytes) return unusable;
  auto json = ParseJson(text);
  if (!json.ok() || !json->is_object() || !json->contains("key") || (*json)["key"] != key) return unusable;
  if (!json->contains("points") || !(*json)["points"].is_array()) return unusable;
  std::vector<CostPoint> points;
  for (const Json& entry : (*json)["points"]) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer() || !entry[1].is_number()) {
      return unusable;
    }
    const auto rows = entry[0].get<int64_t>();
    const auto seconds = entry[1].get<double>();
    const int64_t min_rows = points.empty() ? 1 : points.back().rows + 1;
    if (rows < min_rows || rows > 1 << 20 || !(seconds > 0) || !(seconds < 1e6)) return unusable;
    points.push_back({static_cast<int>(rows), seconds});
  }
  if (points.empty() || !json->contains("switch") || !(*json)["switch"].is_number()) return unusable;
  const auto switch_seconds = (*json)["switch"].get<double>();
  if (!(switch_seconds >= 0) || !(switch_seconds < 1e6)) return unusable;
  return CostCurve(std::move(points), switch_seconds);
}

Result<CostCurve> CalibratedCostCurve(Engine& engine, Token filler, Duration budget, const std::string& path,
                                      std::string_view key, bool measure_anew) {
  if (!measure_anew) {
    if (auto curve = ParseCostCurve(ReadFile(path).value_or(""), key); curve.ok()) return curve;
  }
  auto measured = MeasureCostCurve(engine, filler, budget);
  if (!measured.ok()) return measured.status();
  if (measured->steady) {
    Keep(measured->curve, path, key);
  } else {
    LogInfo("something else keeps this machine busy: what steps cost is measured again at the next start");
  }
  return std::move(measured->curve);
}

}  // namespace outrider
