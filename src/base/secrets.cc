#include "base/secrets.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr std::string_view kSecretFlags[] = {"--api-key", "--admin-key", "--hf-token", "-hft"};
constexpr std::string_view kTokenParameter = "token=";
constexpr std::string_view kHidden = "...";
constexpr std::string_view kSpace = " \t\n";

bool IsIn(char c, std::string_view characters) {
  return characters.find(c) != characters.npos;
}

// Where in `text`, from `from` on, a secret begins; npos if there is none. `*after` is the set of characters that end
// it.
size_t FindSecret(std::string_view text, size_t from, std::string_view* after) {
  size_t first = text.npos;
  const auto found = [&](size_t begin, std::string_view ends) {
    if (begin < first) *after = ends;
    first = std::min(first, begin);
  };
  for (const std::string_view flag : kSecretFlags) {
    for (size_t at = from; (at = text.find(flag, at)) != text.npos; at += flag.size()) {
      size_t begin = at + flag.size();
      if (begin == text.size() || !(text[begin] == '=' || IsIn(text[begin], kSpace))) continue;
      while (begin < text.size() && (text[begin] == '=' || IsIn(text[begin], kSpace))) ++begin;
      found(begin, kSpace);
      break;
    }
  }
  // token=x after a colon or comma, as among a drafter's parameters; --hf-token=x has been found above.
  for (size_t at = from; (at = text.find(kTokenParameter, at)) != text.npos; at += kTokenParameter.size()) {
    if (at > 0 && !IsIn(text[at - 1], ":,")) continue;
    found(at + kTokenParameter.size(), ", \t\n");
    break;
  }
  return first;
}

}  // namespace

bool TakesSecret(std::string_view flag) {
  return std::find(std::begin(kSecretFlags), std::end(kSecretFlags), flag) != std::end(kSecretFlags);
}

std::string HideSecrets(std::string_view word) {
  std::string shown;
  size_t done = 0;
  std::string_view ends;
  for (size_t begin; (begin = FindSecret(word, done, &ends)) != word.npos;) {
    shown += word.substr(done, begin - done);
    shown += kHidden;
    const bool quoted = word.find_first_of("'\"\\") != word.npos;
    done = quoted ? word.size() : std::min(word.find_first_of(ends, begin), word.size());
  }
  return shown.append(word.substr(done));
}

bool ConstantTimeEquals(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return difference == 0;
}

}  // namespace outrider
