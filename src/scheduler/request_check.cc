#include "scheduler/request_check.h"

#include <fmt/format.h>

namespace outrider {

Status PromptTooLong(size_t prompt_tokens, Pos sequence_length, const std::string& field, bool at_least) {
  const auto tokens = static_cast<int64_t>(prompt_tokens);
  return ContextExceeded(
      fmt::format(
          "the prompt of {}{} tokens exceeds the available context size ({} tokens, of which one must be left for "
          "the answer): shorten it, or start the server with a larger --ctx-size",
          at_least ? "at least " : "", tokens, sequence_length),
      field, tokens, sequence_length);
}

Status CheckRequest(const GenerationRequest& request, const EngineInfo& info, const Tokenizer& tokenizer) {
  if (request.prompt.empty()) return InvalidArgument("the prompt is empty", "prompt");
  if (static_cast<Pos>(request.prompt.size()) >= info.sequence_length) {
    return PromptTooLong(request.prompt.size(), info.sequence_length, "prompt");
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
  for (const AdapterScale& adapter : request.adapters) {
    if (adapter.id >= 0 && adapter.id < info.n_adapters) continue;
    return InvalidArgument(fmt::format("adapter {} does not exist; there are {}", adapter.id, info.n_adapters), "lora");
  }
  return {};
}

}  // namespace outrider
