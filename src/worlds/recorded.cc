#include "worlds/recorded.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace outrider {
namespace {

// A line of the catalogue.
struct Entry {
  std::string name, workload, machine;
  int slots = 1;
  std::vector<std::string> drafters;
};

bool ReadText(const Json& json, const char* field, std::string* text) {
  if (!json.contains(field) || !json[field].is_string()) return false;
  *text = json[field];
  return true;
}

bool ReadEntry(const Json& json, Entry* entry) {
  if (!json.is_object() || !ReadText(json, "name", &entry->name) || !ReadText(json, "workload", &entry->workload) ||
      !ReadText(json, "machine", &entry->machine))
    return false;
  if (!json.contains("slots") || !json["slots"].is_number_unsigned()) return false;
  const auto slots = json["slots"].get<uint64_t>();
  if (slots < 1 || slots > 64) return false;
  entry->slots = static_cast<int>(slots);
  if (!json.contains("drafters") || !json["drafters"].is_array()) return false;
  for (const Json& name : json["drafters"]) {
    if (!name.is_string()) return false;
    entry->drafters.push_back(name);
  }
  return true;
}

Result<std::vector<Entry>> ReadCatalogue(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return NotFound(fmt::format("'{}' cannot be read", path));
  const auto json = ParseJson(*text);
  if (!json.ok() || !json->is_array()) return InvalidArgument(fmt::format("'{}' is not a list of worlds", path));
  std::vector<Entry> entries;
  for (const Json& item : *json) {
    if (!ReadEntry(item, &entries.emplace_back()))
      return InvalidArgument(
          fmt::format("'{}': world {} needs name, workload, machine, slots and drafters", path, entries.size()));
  }
  return entries;
}

template <typename T>
Result<T> ReadAs(const std::filesystem::path& path, Result<T> (*parse)(std::string_view)) {
  const std::optional<std::string> text = ReadFile(path.string());
  if (!text) return NotFound(fmt::format("'{}' cannot be read", path.string()));
  auto value = parse(*text);
  if (!value.ok()) return InvalidArgument(fmt::format("'{}': {}", path.string(), value.status().message()));
  return value;
}

}  // namespace

Result<RecordedWorlds> RecordedWorlds::Load(const std::string& path) {
  const auto entries = ReadCatalogue(path);
  if (!entries.ok()) return entries.status();
  const auto folder = std::filesystem::path(path).parent_path();
  RecordedWorlds all;
  for (const Entry& entry : *entries) {
    auto& workload = all.workloads_[entry.workload];
    if (!workload) {
      auto parsed = ReadAs(folder / entry.workload, ParseWorkload);
      if (!parsed.ok()) return parsed.status();
      workload = std::make_unique<const Workload>(std::move(*parsed));
    }
    const auto machine = ReadAs(folder / entry.machine, ParseMachineRecord);
    if (!machine.ok()) return machine.status();
    World& world = all.worlds_.emplace_back();
    world.name = entry.name;
    world.machine = machine->Machine();
    world.slots = entry.slots;
    for (const std::string& name : entry.drafters) world.drafters.push_back(machine->Drafter(name));
    for (const RecordedAnswer& answer : workload->answers)
      world.requests.push_back(RequestFrom(*workload, answer, world.drafters));
  }
  return all;
}

}  // namespace outrider
