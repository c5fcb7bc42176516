// Tokenizer over a llama_vocab, which belongs to the model it came from.
#pragma once

#include <llama.h>

#include <string>
#include <string_view>
#include <vector>

#include "engine/special_cuts.h"
#include "engine/tokenizer.h"

namespace outrider {

class LlamaTokenizer : public Tokenizer {
 public:
  explicit LlamaTokenizer(const llama_vocab* vocab);

  int vocabulary_size() const override { return llama_vocab_n_tokens(vocab_); }
  std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const override;
  std::string Piece(Token token, bool show_special) const override;
  bool EndsGeneration(Token token) const override { return llama_vocab_is_eog(vocab_, token); }
  Token bos() const override { return llama_vocab_bos(vocab_); }
  Token eos() const override { return llama_vocab_eos(vocab_); }
  bool adds_bos() const override { return llama_vocab_get_add_bos(vocab_); }
  InfillTokens infill() const override;
  std::vector<Token> JoinForRanking(const std::vector<Token>& query, const std::vector<Token>& document) const override;
  uint64_t fingerprint() const override { return fingerprint_; }
  size_t max_token_bytes() const override { return max_token_bytes_; }

  const llama_vocab* vocab() const { return vocab_; }

 private:
  bool Append(std::string_view text, bool add_bos, SpecialTokens special, std::vector<Token>* tokens) const;

  const llama_vocab* const vocab_;
  const uint64_t fingerprint_;
  const size_t max_token_bytes_;
  SpecialCuts cuts_of_parsed_, cuts_of_plain_;
};

}  // namespace outrider
