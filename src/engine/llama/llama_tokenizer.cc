#include "engine/llama/llama_tokenizer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>

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

// A token's text in the vocabulary is never shorter than what it stands for. The other types of vocabularies have one
// token for a whole word that they do not know.
size_t MaxTokenBytes(const llama_vocab* vocab) {
  const enum llama_vocab_type type = llama_vocab_type(vocab);
  if (type != LLAMA_VOCAB_TYPE_BPE && type != LLAMA_VOCAB_TYPE_SPM) return 0;
  size_t longest = 0;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    longest = std::max(longest, std::strlen(llama_vocab_get_text(vocab, token)));
  }
  return longest;
}

}  // namespace

LlamaTokenizer::LlamaTokenizer(const llama_vocab* vocab)
    : vocab_(vocab), fingerprint_(Fingerprint(vocab)), max_token_bytes_(MaxTokenBytes(vocab)) {
  for (Token token = 0; token < llama_vocab_n_tokens(vocab); ++token) {
    const int attributes = llama_vocab_get_attr(vocab, token);
    const bool strips_right = (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0;
    const char* text = llama_vocab_get_text(vocab, token);
    constexpr int kParsed = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
    constexpr int kAlways = LLAMA_TOKEN_ATTR_USER_DEFINED;
    if ((attributes & kParsed) != 0) cuts_of_parsed_.Add(text, strips_right);
    if ((attributes & kAlways) != 0 && (attributes & kParsed & ~kAlways) == 0) cuts_of_plain_.Add(text, strips_right);
  }
}

std::vector<Token> LlamaTokenizer::Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 2)) return {};
  std::vector<Token> tokens;
  size_t begin = 0;
  // The other types may look beyond special tokens; and a token at the end would come after each piece.
  const bool in_pieces = max_token_bytes_ > 0 && !(add_bos && llama_vocab_get_add_eos(vocab_));
  if (in_pieces) {
    for (const size_t end : (special == SpecialTokens::kParse ? cuts_of_parsed_ : cuts_of_plain_).Find(text)) {
      if (!Append(text.substr(begin, end - begin), add_bos && begin == 0, special, &tokens)) return {};
      begin = end;
    }
  }
  if (!Append(text.substr(begin), add_bos && begin == 0, special, &tokens)) return {};
  return tokens;
}

// False if the vocabulary has no tokens for this text.
bool LlamaTokenizer::Append(std::string_view text, bool add_bos, SpecialTokens special,
                            std::vector<Token>* tokens) const {
  const auto length = static_cast<int32_t>(text.size());
  const bool parse_special = special == SpecialTokens::kParse;
  const size_t before = tokens->size();
  tokens->resize(before + text.size() / 2 + 8);
  const auto tokenize = [&] {
    return llama_tokenize(vocab_, text.data(), length, tokens->data() + before,
                          static_cast<int32_t>(tokens->size() - before), add_bos, parse_special);
  };
  int32_t count = 0;
  try {
    count = tokenize();
    if (count < 0 && count != std::numeric_limits<int32_t>::min()) {
      tokens->resize(before + static_cast<size_t>(-count));
      count = tokenize();
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // a vocabulary without tokens for single bytes
    return false;
  }
  tokens->resize(before + (count > 0 ? static_cast<size_t>(count) : 0));
  return true;
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
