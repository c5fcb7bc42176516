// Text to tokens and back, and conversations to prompts: llama.cpp's /tokenize, /detokenize and /apply-template.
#include <fmt/format.h>

#include "api/attachments.h"
#include "api/chat_input.h"
#include "api/fields.h"
#include "api/info.h"
#include "api/token_list.h"
#include "base/request_budget.h"
#include "base/utf8.h"

namespace outrider {
namespace {

// The text of a token; its bytes if they are not whole characters.
Json PieceJson(const std::string& piece) {
  if (IsValidUtf8(piece)) return piece;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

Json WithPieces(const std::vector<Token>& tokens, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const Token token : tokens) {
    list.push_back({{"id", token}, {"piece", PieceJson(tokenizer.Piece(token, /*show_special=*/true))}});
  }
  return list;
}

}  // namespace

Result<Json> TokenizeJson(const Json& body, const ApiContext& context) {
  FieldReader fields(body);
  std::string content;
  bool add_special = false, parse_special = true, with_pieces = false;
  if (!fields.Has("content")) fields.Fail("content", "is required");
  fields.String("content", &content);
  fields.Bool("add_special", &add_special);
  fields.Bool("parse_special", &parse_special);
  fields.Bool("with_pieces", &with_pieces);
  if (!fields.status().ok()) return fields.status();
  if (content.size() > kMaxTokenizedBytes) {
    return InvalidArgument(fmt::format("has more than {} bytes: send it in parts", kMaxTokenizedBytes), "content");
  }
  const std::vector<Token> tokens =
      context.tokenizer.Tokenize(content, add_special, parse_special ? SpecialTokens::kParse : SpecialTokens::kAsText);
  const size_t max_tokens = with_pieces ? kMaxListedPieces : kMaxListedTokens;
  if (tokens.size() > max_tokens) {
    return InvalidArgument(fmt::format("has {} tokens, more than the {} of one answer{}: send it in parts",
                                       tokens.size(), max_tokens, with_pieces ? " with pieces" : ""),
                           "content");
  }
  return Json{{"tokens", with_pieces ? WithPieces(tokens, context.tokenizer) : Json(tokens)}};
}

Result<Json> DetokenizeJson(const Json& body, const ApiContext& context) {
  FieldReader fields(body);
  if (!fields.Has("tokens")) fields.Fail("tokens", "is required");
  if (!fields.status().ok()) return fields.status();
  const Result<std::vector<Token>> tokens = ReadTokenList(fields.At("tokens"), "tokens", context.tokenizer);
  if (!tokens.ok()) return tokens.status();
  std::string content;
  for (const Token token : *tokens) {
    content += context.tokenizer.Piece(token, /*show_special=*/true);
    if (content.size() > kMaxDetokenizedBytes) {
      return InvalidArgument(
          fmt::format("stand for more than {} bytes of text: send them in parts", kMaxDetokenizedBytes), "tokens");
    }
  }
  return Json{{"content", ReplaceInvalidUtf8(content)}};
}

Result<Json> ApplyTemplateJson(const Json& body, const ApiContext& context) {
  const Result<ChatInput> input = ReadChatInput(body);
  if (!input.ok()) return input.status();
  const Result<ChatPrompt> prompt = context.chat.Apply(*input);
  if (!prompt.ok()) return prompt.status();
  return Json{{"prompt", WithPublicMarkers(prompt->text, input->attachments)}};
}

}  // namespace outrider
