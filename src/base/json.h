// JSON values, and the only parser that may be used for bytes from outside.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace outrider {

using Json =
    nlohmann::ordered_json;  // keeps the order of keys: answers read as documented, schemas keep their property order

inline constexpr int kMaxJsonDepth = 128;  // copying and dumping recurse; nobody's request is deeper

// Refuses invalid JSON, invalid UTF-8, and nesting deeper than kMaxJsonDepth, before any of it is built.
Result<Json> ParseJson(std::string_view text);

// Never throws: bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace outrider
