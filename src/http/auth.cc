#include "http/auth.h"

#include <fmt/format.h>

#include <fstream>

#include "base/secrets.h"

namespace outrider {

size_t ApiKeys::Find(std::string_view authorization, std::string_view x_api_key) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view bearer = authorization.starts_with(kBearer) ? authorization.substr(kBearer.size()) : "";
  size_t found = kNone;
  for (size_t i = 0; i < keys_.size(); ++i) {  // no early exit: the time must not tell which key matched
    const std::string& key = keys_[i];
    if (!key.empty() && (ConstantTimeEquals(bearer, key) | ConstantTimeEquals(x_api_key, key))) found = i;
  }
  return found;
}

bool ApiKeys::Accepts(std::string_view authorization, std::string_view x_api_key) const {
  return Find(authorization, x_api_key) != kNone;
}

std::string ApiKeys::Owner(std::string_view authorization, std::string_view x_api_key) const {
  return required() ? fmt::format("key {}", Find(authorization, x_api_key)) : "";
}

Result<std::vector<std::string>> ReadKeyFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return InvalidArgument(fmt::format("--api-key-file '{}' cannot be read", path));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line[0] != '#') keys.push_back(line);
  }
  if (keys.empty()) return InvalidArgument(fmt::format("--api-key-file '{}' holds no key", path));
  return keys;
}

}  // namespace outrider
