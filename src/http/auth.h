// API keys: which clients may use the server, what they are called, what each of them may do, and how much.
//
// Only the SHA-256 of a key is kept, so that neither a log nor a core file can show one. Plain values; thread-safe once
// made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace outrider {

// What one key may use; 0 = no limit.
struct KeyLimits {
  int requests_per_minute = 0;
  int tokens_per_minute = 0;  // of prompts and answers together
  int slots = 0;              // generations at once, those that wait included
};

struct ApiKey {
  std::string name;    // in the log and in errors; whose request it is for the scheduler. Unique; "" = gets a number
  std::string digest;  // SHA-256 of the key in lower-case hexadecimal digits
  bool admin = false;  // may save, restore and erase slots, and set the default scales of adapters
  KeyLimits limits = {};
};

ApiKey PlainKey(std::string_view secret, bool admin = false);

class ApiKeys {
 public:
  ApiKeys() = default;
  // Keys without a name are called "key 1", "key 2" … by their place.
  explicit ApiKeys(std::vector<ApiKey> keys);

  bool required() const { return !keys_.empty(); }
  const std::vector<ApiKey>& keys() const { return keys_; }

  // The key that was sent, null if it is none of ours. `authorization` is the header of that name ("Bearer KEY"),
  // `x_api_key` the one that Anthropic's clients send; either may be empty.
  const ApiKey* Find(std::string_view authorization, std::string_view x_api_key) const;

 private:
  std::vector<ApiKey> keys_;
};

// One key per line; blank lines and lines that begin with # are skipped. A line is the key itself, or
//   sha256:HEX [WORD…]   the key's SHA-256: printf %s "$KEY" | sha256sum
//   key:KEY [WORD…]      the key itself, which then cannot contain spaces
// with words out of name=NAME, admin, requests-per-minute=N, tokens-per-minute=N, slots=N.
Result<std::vector<ApiKey>> ReadKeyFile(const std::string& path);

// One line of such a file that is neither blank nor a comment. Errors do not show the line.
Result<ApiKey> ParseKeyLine(std::string_view line);

// Whether two keys have one name or are the same key.
Status CheckDistinct(const std::vector<ApiKey>& keys);

}  // namespace outrider
