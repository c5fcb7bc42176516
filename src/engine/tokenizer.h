// Tokenizer: text to tokens and back, and what the vocabulary knows about them. Immutable after loading; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace outrider {

enum class SpecialTokens { kAsText, kParse };  // whether "<|im_start|>" in a text is ordinary text or one control token

// The tokens by which a model that was trained to fill gaps in files knows their parts; kNoToken = it has none.
struct InfillTokens {
  Token prefix = kNoToken, suffix = kNoToken, middle = kNoToken;
  Token repository = kNoToken, file = kNoToken;  // before their names
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int vocabulary_size() const = 0;

  // `add_bos`: also add what the model wants at the beginning (and end) of a text. Empty if the vocabulary has no
  // tokens for this text.
  virtual std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const = 0;

  // The bytes a token stands for; not always whole UTF-8 characters. Control tokens are rendered only if
  // `show_special`.
  virtual std::string Piece(Token token, bool show_special) const = 0;

  virtual bool EndsGeneration(Token token) const = 0;
  virtual Token bos() const = 0;  // kNoToken if the vocabulary has none
  virtual Token eos() const = 0;
  virtual bool adds_bos() const { return bos() != kNoToken; }  // whether texts begin with bos()
  virtual InfillTokens infill() const { return {}; }

  // A query and a document, as models that rank documents want to read them.
  virtual std::vector<Token> JoinForRanking(const std::vector<Token>& query, const std::vector<Token>& document) const {
    std::vector<Token> joined = query;
    joined.insert(joined.end(), document.begin(), document.end());
    return joined;
  }

  // Equal for vocabularies with the same tokens in the same order; how a draft is recognised as matching its target.
  virtual uint64_t fingerprint() const = 0;

  // No token stands for more bytes of a text, so that a text's size says how many tokens it has at least. 0 = not
  // known.
  virtual size_t max_token_bytes() const { return 0; }

  // How many tokens a text of so many bytes has at least, which is known before it is tokenised: that takes long for
  // long texts.
  size_t FewestTokens(size_t bytes) const {
    const size_t longest = max_token_bytes();
    return longest == 0 ? 0 : (bytes + longest - 1) / longest;
  }

  bool Contains(Token token) const { return token >= 0 && token < vocabulary_size(); }
};

}  // namespace outrider
