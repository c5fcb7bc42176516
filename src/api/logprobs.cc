#include "api/logprobs.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace outrider {
namespace {

size_t CountCharacters(const std::string& bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

Json ChatToken(const std::string& piece, float logprob) {
  return {{"token", TokenText(piece)}, {"logprob", FiniteLogprob(logprob)}, {"bytes", TokenBytes(piece)}};
}

Json LlamaToken(Token token, const std::string& piece, float logprob, bool as_probability) {
  Json item = {{"id", token}, {"token", TokenText(piece)}, {"bytes", TokenBytes(piece)}};
  if (as_probability) {
    item["prob"] = std::exp(logprob);
  } else {
    item["logprob"] = FiniteLogprob(logprob);
  }
  return item;
}

}  // namespace

float FiniteLogprob(float logprob) {
  return std::isfinite(logprob) ? logprob : kImpossibleLogprob;
}

std::string TokenText(const std::string& piece) {
  return ReplaceInvalidUtf8(piece);
}

Json TokenBytes(const std::string& piece) {
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json ChatLogprobs(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const GeneratedToken& token : tokens) {
    Json item = ChatToken(token.piece, token.logprob);
    item["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : token.top) {
      item["top_logprobs"].push_back(ChatToken(tokenizer.Piece(top.token, /*show_special=*/true), top.logprob));
    }
    content.push_back(std::move(item));
  }
  return content;
}

Json LegacyLogprobs(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer, bool with_top,
                    size_t* offset) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const GeneratedToken& token : tokens) {
    texts.push_back(TokenText(token.piece));
    logprobs.push_back(FiniteLogprob(token.logprob));
    offsets.push_back(*offset);
    *offset += CountCharacters(token.piece);
    Json top = Json::object();
    for (const TokenLogprob& alternative : token.top) {
      // Different tokens may print alike; the likelier one comes first and stays.
      const std::string text = TokenText(tokenizer.Piece(alternative.token, /*show_special=*/true));
      if (!top.contains(text)) top[text] = FiniteLogprob(alternative.logprob);
    }
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", with_top ? std::move(tops) : Json()},
          {"text_offset", std::move(offsets)}};
}

Json LlamaProbabilities(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer, bool as_probabilities) {
  Json items = Json::array();
  for (const GeneratedToken& token : tokens) {
    Json item = LlamaToken(token.token, token.piece, token.logprob, as_probabilities);
    Json top = Json::array();
    for (const TokenLogprob& alternative : token.top) {
      top.push_back(LlamaToken(alternative.token, tokenizer.Piece(alternative.token, /*show_special=*/true),
                               alternative.logprob, as_probabilities));
    }
    item[as_probabilities ? "top_probs" : "top_logprobs"] = std::move(top);
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace outrider
