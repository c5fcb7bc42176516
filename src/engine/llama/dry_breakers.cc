#include "engine/llama/dry_breakers.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr size_t kMaxBreakerBytes = 40;
constexpr size_t kMaxFollowing = 20;  // tokens

}  // namespace

std::vector<std::vector<llama_token>> DryBreakers::Find(const std::vector<std::string>& breakers) {
  std::call_once(texts_written_, [this] { WriteTexts(); });
  std::vector<std::vector<llama_token>> sequences;
  for (const std::string& breaker : breakers) {
    if (!breaker.empty()) FindOne(breaker.substr(0, kMaxBreakerBytes), &sequences);
  }
  return sequences;
}

void DryBreakers::WriteTexts() {
  texts_.resize(static_cast<size_t>(llama_vocab_n_tokens(vocab_)));
  std::string text(256, '\0');
  for (size_t i = 0; i < texts_.size(); ++i) {
    const auto token = static_cast<llama_token>(i);
    const auto write = [&] {
      return llama_detokenize(vocab_, &token, 1, text.data(), static_cast<int32_t>(text.size()),
                              /*remove_special=*/false, /*unparse_special=*/true);
    };
    int32_t size = write();
    if (size < 0) {
      text.resize(static_cast<size_t>(-size));
      size = write();
    }
    texts_[i] = text.substr(0, static_cast<size_t>(std::max(size, 0)));
  }
}

void DryBreakers::FindOne(const std::string& breaker, std::vector<std::vector<llama_token>>* sequences) const {
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string& text = texts_[i];
    const auto token = static_cast<llama_token>(i);
    if (text.find(breaker) != text.npos) {
      sequences->push_back({token});
      continue;
    }
    // The token may end with the beginning of the breaker.
    const size_t longest = std::min(text.size(), breaker.size() - 1);
    for (size_t begun = longest; begun > 0; --begun) {
      if (text.compare(text.size() - begun, begun, breaker, 0, begun) != 0) continue;
      std::vector<llama_token> sequence = {token};
      std::vector<llama_token> rest = Tokenize(breaker.substr(begun));
      rest.resize(std::min(rest.size(), kMaxFollowing));
      sequence.insert(sequence.end(), rest.begin(), rest.end());
      sequences->push_back(std::move(sequence));
    }
  }
}

std::vector<llama_token> DryBreakers::Tokenize(const std::string& text) const {
  std::vector<llama_token> tokens(text.size() + 8);
  const int32_t count =
      llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                     static_cast<int32_t>(tokens.size()), /*add_special=*/false, /*parse_special=*/false);
  tokens.resize(static_cast<size_t>(std::max(count, 0)));
  return tokens;
}

}  // namespace outrider
