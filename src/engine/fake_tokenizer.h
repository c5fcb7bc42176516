// A byte-level tokenizer for tests: token = byte, 256 = beginning of text, 257 = end of text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer.h"

namespace outrider {

class FakeTokenizer : public Tokenizer {
 public:
  static constexpr Token kBos = 256, kEos = 257;

  int vocabulary_size() const override { return 258; }
  std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens) const override {
    std::vector<Token> tokens;
    if (add_bos) tokens.push_back(kBos);
    for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string Piece(Token token, bool show_special) const override {
    if (token < 256) return std::string(1, static_cast<char>(token));
    return show_special ? (token == kBos ? "<bos>" : "<eos>") : "";
  }
  bool EndsGeneration(Token token) const override { return token == kEos; }
  Token bos() const override { return kBos; }
  Token eos() const override { return kEos; }
  uint64_t fingerprint() const override { return 258; }
  size_t max_token_bytes() const override { return 1; }
};

}  // namespace outrider
