// Files with one JSON value a line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Calls `take(value)`, which returns a Status, for each line that is not empty. The first error ends the loop and is
// returned with the number of its line.
template <typename Take>
Status ForEachJsonLine(std::string_view lines, Take take) {
  for (int number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto json = ParseJson(line);
    const Status status = json.ok() ? take(*json) : json.status();
    if (!status.ok()) return InvalidArgument(fmt::format("line {}: {}", number, status.message()));
  }
  return {};
}

}  // namespace outrider
