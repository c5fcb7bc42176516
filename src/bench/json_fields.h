// Fields of JSON from other programs: a field that is missing or of another type reads as null, "" or 0.
#pragma once

#include <algorithm>
#include <string>

#include "base/json.h"

namespace outrider {

inline const Json& Field(const Json& json, const char* key) {
  static const Json nothing;
  if (!json.is_object()) return nothing;
  const auto found = json.find(key);
  return found == json.end() ? nothing : *found;
}

inline std::string TextOf(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::string();
}
inline double NumberOf(const Json& json) {
  return json.is_number() ? json.get<double>() : 0;
}
inline int CountOf(const Json& json) {
  return static_cast<int>(std::clamp(NumberOf(json), 0.0, 1e9));
}

}  // namespace outrider
