#include "http/auth.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/secrets.h"

namespace outrider {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr size_t kMaxNameBytes = 64;

std::string Sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool IsDigest(std::string_view text) {
  return text.size() == 2 * kDigestBytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsName(std::string_view text) {
  const auto fine = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '@'; };
  return !text.empty() && text.size() <= kMaxNameBytes && std::all_of(text.begin(), text.end(), fine);
}

Status ApplyWord(const std::string& word, ApiKey* key) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
  if (word == "admin") {
    key->admin = true;
    return {};
  }
  if (name == "name") {
    if (!IsName(value)) return InvalidArgument("a name is made of up to 64 letters, digits and .-_@");
    key->name = value;
    return {};
  }
  int* limit = name == "requests-per-minute" ? &key->limits.requests_per_minute
               : name == "tokens-per-minute" ? &key->limits.tokens_per_minute
               : name == "slots"             ? &key->limits.slots
                                             : nullptr;
  if (limit == nullptr) {
    return InvalidArgument(
        "after the key come words out of name=NAME, admin, requests-per-minute=N, tokens-per-minute=N, slots=N");
  }
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *limit);
  if (value.empty() || error != std::errc() || end != value.data() + value.size() || *limit < 1) {
    return InvalidArgument(fmt::format("{} needs a whole number from 1 on", name));
  }
  return {};
}

}  // namespace

ApiKey PlainKey(std::string_view secret, bool admin) {
  return {.name = "", .digest = Sha256(secret), .admin = admin};
}

ApiKeys::ApiKeys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].name.empty()) keys_[i].name = fmt::format("key {}", i + 1);
  }
}

const ApiKey* ApiKeys::Find(std::string_view authorization, std::string_view x_api_key) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view bearer = authorization.starts_with(kBearer) ? authorization.substr(kBearer.size()) : "";
  const ApiKey* found = nullptr;
  for (const std::string_view sent : {bearer, x_api_key}) {
    if (sent.empty()) continue;
    const std::string digest = Sha256(sent);
    for (const ApiKey& key : keys_) {  // no early exit: the time must not tell which key matched
      if (ConstantTimeEquals(digest, key.digest)) found = &key;
    }
  }
  return found;
}

Result<ApiKey> ParseKeyLine(std::string_view line) {
  const bool hashed = line.starts_with("sha256:");
  if (!hashed && !line.starts_with("key:")) return PlainKey(line);
  std::istringstream words{std::string(line.substr(line.find(':') + 1))};
  std::string secret;
  words >> secret;
  if (line.size() > line.find(':') + 1 && line[line.find(':') + 1] == ' ') secret.clear();
  if (hashed && !IsDigest(secret)) return InvalidArgument("sha256: needs 64 hexadecimal digits in lower case");
  if (secret.empty()) return InvalidArgument("the key is empty");
  ApiKey key = hashed ? ApiKey{.name = "", .digest = secret} : PlainKey(secret);
  for (std::string word; words >> word;) {
    if (Status status = ApplyWord(word, &key); !status.ok()) return status;
  }
  return key;
}

Result<std::vector<ApiKey>> ReadKeyFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return InvalidArgument(fmt::format("--api-key-file '{}' cannot be read", path));
  std::vector<ApiKey> keys;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    auto key = ParseKeyLine(line);
    if (!key.ok()) {
      return InvalidArgument(fmt::format("--api-key-file '{}', line {}: {}", path, number, key.status().message()));
    }
    keys.push_back(std::move(*key));
  }
  if (keys.empty()) return InvalidArgument(fmt::format("--api-key-file '{}' holds no key", path));
  return keys;
}

Status CheckDistinct(const std::vector<ApiKey>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!keys[i].name.empty() && keys[i].name == keys[j].name) {
        return InvalidArgument(fmt::format("two API keys have the name '{}'", keys[i].name));
      }
      if (keys[i].digest == keys[j].digest) {
        return InvalidArgument(fmt::format("API keys {} and {} are the same", j + 1, i + 1));
      }
    }
  }
  return {};
}

}  // namespace outrider
