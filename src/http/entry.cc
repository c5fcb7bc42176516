#include "http/entry.h"

#include <algorithm>

namespace outrider {

Entry EntryOf(const RequestHead& head) {
  return {{head.method(), head.Header("Host"), head.Header("Origin"), head.Header("Sec-Fetch-Site"),
           head.Header("Sec-Fetch-Mode"), head.Header("Content-Type"), /*has_body=*/true},
          head.path(),
          head.Header("Authorization"),
          head.Header("x-api-key"),
          head.Header("Accept")};
}

Entry EntryOf(const httplib::Request& request) {
  const auto header = [&request](const char* name) -> std::string_view {
    const auto [first, end] = request.headers.equal_range(name);
    return first == end ? std::string_view() : std::string_view(first->second);
  };
  return {{request.method, header("Host"), header("Origin"), header("Sec-Fetch-Site"), header("Sec-Fetch-Mode"),
           header("Content-Type"),
           request.has_header("Transfer-Encoding") || request.get_header_value_u64("Content-Length") > 0},
          request.path,
          header("Authorization"),
          header("x-api-key"),
          header("Accept")};
}

const ApiKey* KeyOf(const ApiKeys& keys, const Entry& entry) {
  return keys.Find(entry.authorization, entry.x_api_key);
}

const ApiKey* KeyOf(const ApiKeys& keys, const httplib::Request& request) {
  return KeyOf(keys, EntryOf(request));
}

std::string OwnerOf(const ApiKeys& keys, const httplib::Request& request) {
  const ApiKey* key = KeyOf(keys, request);
  return key == nullptr ? "" : key->name;
}

std::string_view WithoutPrefix(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return "";
  path.remove_prefix(prefix.size());
  return path.starts_with('/') ? path : "";
}

bool IsOpenPath(std::string_view path) {
  return std::find(kHealthPaths.begin(), kHealthPaths.end(), path) != kHealthPaths.end();
}

bool IsProbePath(std::string_view path) {
  return IsOpenPath(path) || path == kMetricsPath;
}

}  // namespace outrider
