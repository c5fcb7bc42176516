// FakeWordTokenizer: a tokenizer for tests whose tokens are bytes and some words; the longest word that fits is taken.
// It can spell the same texts as FakeTokenizer with other tokens. Like some real tokenizers it may put a space before
// every text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/tokenizer.h"

namespace outrider {

class FakeWordTokenizer : public Tokenizer {
 public:
  static constexpr Token kBos = 0, kEos = 1, kFirstByte = 2, kFirstWord = kFirstByte + 256;

  explicit FakeWordTokenizer(std::vector<std::string> words, bool space_first = false)
      : words_(std::move(words)), space_first_(space_first) {}

  int vocabulary_size() const override { return kFirstWord + static_cast<int>(words_.size()); }
  std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens) const override {
    std::vector<Token> tokens;
    if (add_bos) tokens.push_back(kBos);
    const std::string spaced = (space_first_ && !text.empty() ? " " : "") + std::string(text);
    for (std::string_view rest = spaced; !rest.empty();) {
      Token best = kFirstByte + static_cast<unsigned char>(rest[0]);
      size_t length = 1;
      for (size_t i = 0; i < words_.size(); ++i) {
        if (words_[i].size() <= length || !rest.starts_with(words_[i])) continue;
        best = kFirstWord + static_cast<Token>(i);
        length = words_[i].size();
      }
      tokens.push_back(best);
      rest.remove_prefix(length);
    }
    return tokens;
  }
  std::string Piece(Token token, bool show_special) const override {
    if (token >= kFirstWord) return words_[static_cast<size_t>(token - kFirstWord)];
    if (token >= kFirstByte) return std::string(1, static_cast<char>(token - kFirstByte));
    return show_special ? (token == kBos ? "<s>" : "</s>") : "";
  }
  bool EndsGeneration(Token token) const override { return token == kEos; }
  Token bos() const override { return kBos; }
  Token eos() const override { return kEos; }
  uint64_t fingerprint() const override { return 1; }

 private:
  const std::vector<std::string> words_;
  const bool space_first_;
};

}  // namespace outrider
