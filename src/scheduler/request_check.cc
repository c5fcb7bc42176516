#include "scheduler/request_check.h"

#include <fmt/format.h>

namespace outrider {

Status CheckRequest(const GenerationRequest& request, const EngineInfo& info, const Tokenizer& tokenizer) {
  if (request.prompt.empty()) return InvalidArgument("the prompt is empty", "prompt");
  if (static_cast<Pos>(request.prompt.size()) >= info.sequence_length) {
    return InvalidArgument(
        fmt::format("the prompt has {} tokens, but the context holds {} including the answer: shorten it, or start "
                    "the server with a larger --ctx-size",
                    request.prompt.size(), info.sequence_length),
        "prompt");
  }
  for (Token token : request.prompt) {
    if (!tokenizer.Contains(token)) {
      return InvalidArgument(
          fmt::format("token {} is not in the vocabulary of {} tokens", token, tokenizer.vocabulary_size()), "prompt");
    }
  }
  if (request.slot < -1 || request.slot >= info.n_sequences) {
    return InvalidArgument(fmt::format("slot {} does not exist; there are {}", request.slot, info.n_sequences),
                           "id_slot");
  }
  return {};
}

}  // namespace outrider
