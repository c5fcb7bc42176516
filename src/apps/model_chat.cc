#include "apps/model_chat.h"

namespace outrider {

Result<std::unique_ptr<ChatTemplate>> ChatTemplateOf(const LlamaModel& model, const std::string& source,
                                                     const Json& arguments) {
  const LlamaTokenizer& tokenizer = model.tokenizer();
  const auto text = [&](Token token) { return token == kNoToken ? "" : tokenizer.Piece(token, /*show_special=*/true); };
  return ChatTemplate::Create(source.empty() ? model.ChatTemplate() : source, text(tokenizer.bos()),
                              text(tokenizer.eos()), arguments);
}

}  // namespace outrider
