#include "worlds/machine_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/json.h"

namespace outrider {
namespace {

constexpr double kMaxMilliseconds = 1e7;
constexpr int kMaxRows = 1 << 16, kMaxContext = 1 << 24;

// A straight line between points that ascend in x; before the first the value stays, past the last the slope goes on.
double Interpolate(const std::vector<std::pair<double, double>>& points, double x) {
  if (points.size() == 1 || x <= points.front().first) return points.front().second;
  const auto above = std::lower_bound(points.begin() + 1, points.end() - 1, x,
                                      [](const auto& point, double value) { return point.first < value; });
  const auto& [high_x, high_y] = *above;
  const auto& [low_x, low_y] = *(above - 1);
  return low_y + (high_y - low_y) * (x - low_x) / (high_x - low_x);
}

// The steps of one context.
struct Curve {
  int context;
  std::vector<std::pair<double, double>> points;  // rows and seconds
};

std::vector<Curve> CurvesOf(const std::vector<MachineRecord::Step>& steps) {
  std::vector<Curve> curves;
  for (const MachineRecord::Step& step : steps) {
    if (curves.empty() || curves.back().context != step.context) curves.push_back({step.context, {}});
    curves.back().points.emplace_back(step.rows, step.seconds);
  }
  return curves;
}

// A number of milliseconds as seconds; 0 if it is not there, nothing if it is none.
bool ReadMilliseconds(const Json& json, const char* name, double* seconds) {
  if (!json.contains(name)) return true;
  if (!json[name].is_number()) return false;
  const auto ms = json[name].get<double>();
  *seconds = ms / 1000;
  return ms >= 0 && ms <= kMaxMilliseconds;
}

bool ReadStep(const Json& json, MachineRecord::Step* step) {
  if (!json.is_array() || json.size() != 3 || !json[0].is_number_integer() || !json[1].is_number_integer() ||
      !json[2].is_number())
    return false;
  const auto rows = json[0].get<int64_t>(), context = json[1].get<int64_t>();
  const auto ms = json[2].get<double>();
  if (rows < 1 || rows > kMaxRows || context < 0 || context > kMaxContext || !(ms > 0) || ms > kMaxMilliseconds)
    return false;
  *step = {static_cast<int>(rows), static_cast<int>(context), ms / 1000};
  return true;
}

bool ReadDrafter(const Json& json, WorldDrafter* drafter) {
  return json.is_object() && ReadMilliseconds(json, "token_ms", &drafter->token_seconds) &&
         ReadMilliseconds(json, "more_token_ms", &drafter->more_token_seconds) &&
         ReadMilliseconds(json, "read_ms", &drafter->read_seconds) &&
         ReadMilliseconds(json, "delay_ms", &drafter->delay_seconds);
}

Status Bad(const std::string& what) {
  return InvalidArgument(fmt::format("not the record of a machine: {}", what));
}

}  // namespace

WorldMachine MachineRecord::Machine() const {
  WorldMachine machine = costs;
  machine.step_seconds = [curves = std::make_shared<const std::vector<Curve>>(CurvesOf(steps))](int rows, int context) {
    std::vector<std::pair<double, double>> by_context;
    for (const Curve& curve : *curves) by_context.emplace_back(curve.context, Interpolate(curve.points, rows));
    return Interpolate(by_context, context);
  };
  return machine;
}

WorldDrafter MachineRecord::Drafter(const std::string& drafter) const {
  const auto found = drafters.find(drafter);
  return found == drafters.end() ? WorldDrafter{drafter} : found->second;
}

Result<MachineRecord> ParseMachineRecord(std::string_view text) {
  auto parsed = ParseJson(text);
  if (!parsed.ok()) return parsed.status();
  const Json& json = *parsed;
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return Bad("it has no name");
  MachineRecord record;
  record.name = json["name"];
  if (json.contains("source") && json["source"].is_string()) record.source = json["source"];
  if (!json.contains("steps") || !json["steps"].is_array() || json["steps"].empty()) return Bad("it has no steps");
  for (const Json& entry : json["steps"]) {
    MachineRecord::Step step;
    if (!ReadStep(entry, &step)) return Bad("a step is [rows, context, milliseconds]");
    const auto key = [](const MachineRecord::Step& s) { return std::pair(s.context, s.rows); };
    if (!record.steps.empty() && key(record.steps.back()) >= key(step))
      return Bad("steps must ascend by context, then by rows");
    record.steps.push_back(step);
  }
  WorldMachine& costs = record.costs;
  if (!ReadMilliseconds(json, "switch_ms", &costs.switch_seconds) ||
      !ReadMilliseconds(json, "new_shape_ms", &costs.new_shape_seconds) ||
      !ReadMilliseconds(json, "save_ms", &costs.save_seconds) ||
      !ReadMilliseconds(json, "restore_ms", &costs.restore_seconds))
    return Bad("a time is not a number of milliseconds");
  if (json.contains("noise")) {
    if (!json["noise"].is_number()) return Bad("noise is not a number");
    costs.noise = std::clamp(json["noise"].get<double>(), 0.0, 1.0);
  }
  if (json.contains("replays")) costs.replays = json["replays"].is_boolean() && json["replays"].get<bool>();
  if (json.contains("drafters")) {
    if (!json["drafters"].is_object()) return Bad("drafters is not an object");
    for (const auto& [name, entry] : json["drafters"].items()) {
      WorldDrafter drafter{name};
      if (!ReadDrafter(entry, &drafter)) return Bad(fmt::format("the costs of the drafter '{}'", name));
      record.drafters[name] = drafter;
    }
  }
  return record;
}

}  // namespace outrider
