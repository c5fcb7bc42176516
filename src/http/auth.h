// API keys: which clients may use the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

class ApiKeys {
 public:
  ApiKeys() = default;
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}

  bool required() const { return !keys_.empty(); }

  // `authorization` is the header of that name ("Bearer KEY"), `x_api_key` the one that Anthropic's clients send;
  // either may be empty.
  bool Accepts(std::string_view authorization, std::string_view x_api_key) const;

  // A name for the key that was sent, which does not contain the key; "" if no key is required.
  std::string Owner(std::string_view authorization, std::string_view x_api_key) const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t Find(std::string_view authorization, std::string_view x_api_key) const;

  std::vector<std::string> keys_;
};

// One key per line; blank lines and lines that begin with # are skipped.
Result<std::vector<std::string>> ReadKeyFile(const std::string& path);

}  // namespace outrider
