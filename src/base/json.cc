#include "base/json.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace outrider {
namespace {

int DeepestNesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (text.empty()) return InvalidArgument("the request body is empty; send a JSON object");
  if (!IsValidUtf8(text)) return InvalidArgument("the request body is not valid UTF-8");
  if (DeepestNesting(text) > kMaxJsonDepth) {
    return InvalidArgument(fmt::format("the request body is nested deeper than {} levels", kMaxJsonDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." → the part a reader needs.
    const std::string_view what = error.what();
    const size_t from = what.find("parse error");
    return InvalidArgument(
        fmt::format("the request body is not valid JSON: {}", what.substr(from == what.npos ? 0 : from)));
  }
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace outrider
