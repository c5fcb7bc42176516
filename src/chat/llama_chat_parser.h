// ChatParser on llama-common's PEG parsers, made from what its template engine says about one prompt.
#pragma once

#include <chat.h>

#include <memory>

#include "chat/chat_template.h"

namespace outrider {

class LlamaChatParser : public ChatParser {
 public:
  // `structured`: the request has tools or a schema, so that the content is not simply the text. Throws what
  // llama-common throws. Without `extract_reasoning` reasoning is part of the content.
  LlamaChatParser(const common_chat_params& params, bool structured, bool extract_reasoning);

  ChatMessage Parse(const std::string& text, bool partial) const override;
  bool plain() const override { return plain_; }
  std::optional<std::vector<std::string>> markers() const override;

 private:
  ChatMessage ParseOrThrow(const std::string& text, bool partial) const;
  bool IsPlain(const common_chat_params& params, bool structured) const;

  common_chat_parser_params params_;
  ChatMessage prefill_;  // what of the message the prompt holds already, if it continues one: not part of the answer
  bool plain_ = false;
};

}  // namespace outrider
