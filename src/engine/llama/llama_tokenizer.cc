#include "engine/llama/llama_tokenizer.h"

#include <cstring>
#include <exception>
#include <limits>

#include "base/hash.h"

namespace outrider {
namespace {

// Over every token's text and attributes.
uint64_t Fingerprint(const llama_vocab* vocab) {
  Fnv1a hash;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const char* text = llama_vocab_get_text(vocab, token);
    hash.Add({text, std::strlen(text) + 1});
    hash.AddValue(static_cast<int32_t>(llama_vocab_get_attr(vocab, token)));
  }
  return hash.hash();
}

}  // namespace

LlamaTokenizer::LlamaTokenizer(const llama_vocab* vocab) : vocab_(vocab), fingerprint_(Fingerprint(vocab)) {}

std::vector<Token> LlamaTokenizer::Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 2)) return {};
  const auto length = static_cast<int32_t>(text.size());
  const bool parse_special = special == SpecialTokens::kParse;
  std::vector<Token> tokens(text.size() / 2 + 8);
  const auto tokenize = [&] {
    return llama_tokenize(vocab_, text.data(), length, tokens.data(), static_cast<int32_t>(tokens.size()), add_bos,
                          parse_special);
  };
  int32_t count = 0;
  try {
    count = tokenize();
    if (count < 0 && count != std::numeric_limits<int32_t>::min()) {
      tokens.resize(static_cast<size_t>(-count));
      count = tokenize();
    }
  } catch (const std::exception&) {  // a vocabulary without tokens for single bytes
    return {};
  }
  tokens.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return tokens;
}

InfillTokens LlamaTokenizer::infill() const {
  return {.prefix = llama_vocab_fim_pre(vocab_),
          .suffix = llama_vocab_fim_suf(vocab_),
          .middle = llama_vocab_fim_mid(vocab_),
          .repository = llama_vocab_fim_rep(vocab_),
          .file = llama_vocab_fim_sep(vocab_)};
}

std::vector<Token> LlamaTokenizer::JoinForRanking(const std::vector<Token>& query,
                                                  const std::vector<Token>& document) const {
  const Token end = eos() == kNoToken ? llama_vocab_sep(vocab_) : eos();
  std::vector<Token> joined;
  if (adds_bos()) joined.push_back(bos());
  joined.insert(joined.end(), query.begin(), query.end());
  if (llama_vocab_get_add_eos(vocab_)) joined.push_back(end);
  if (llama_vocab_get_add_sep(vocab_)) joined.push_back(llama_vocab_sep(vocab_));
  joined.insert(joined.end(), document.begin(), document.end());
  if (llama_vocab_get_add_eos(vocab_)) joined.push_back(end);
  return joined;
}

std::string LlamaTokenizer::Piece(Token token, bool show_special) const {
  char buffer[128];
  const int32_t length = llama_token_to_piece(vocab_, token, buffer, sizeof buffer, 0, show_special);
  if (length >= 0) return {buffer, static_cast<size_t>(length)};
  std::string piece(static_cast<size_t>(-length), '\0');
  llama_token_to_piece(vocab_, token, piece.data(), -length, 0, show_special);
  return piece;
}

}  // namespace outrider
