// JSON values, and the only parser that may be used for bytes from outside.
//
// Json finds a key by walking through the members of its object, and so do copying, merging and what llama-common does
// with it. The parser therefore has a budget (JsonLimits), which it checks while it reads: a text beyond it is refused
// before more of it is built. Within the limits, parsing and everything that walks takes less than 100 ms.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/status.h"

namespace outrider {

using Json =
    nlohmann::ordered_json;  // keeps the order of keys: answers read as documented, schemas keep their property order

inline constexpr int kMaxJsonDepth = 128;  // copying and dumping recurse; nobody's request is deeper

struct JsonLimits {
  size_t values = size_t{1} << 20;  // in the whole text; a member of an object counts as kValuesPerMember
  size_t members = 1024;            // of one object
};
inline constexpr size_t kValuesPerMember = 16;  // a member needs that much more memory than a number in a list

// Refuses invalid JSON, invalid UTF-8, nesting deeper than kMaxJsonDepth, and what is beyond `limits`. `wanted`, if
// given, is asked now and then while a long text is parsed; if it says no, the result is kUnavailable.
Result<Json> ParseJson(std::string_view text, const JsonLimits& limits = {},
                       const std::function<bool()>& wanted = nullptr);

// Never throws: bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);

}  // namespace outrider
