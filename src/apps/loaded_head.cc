#include "apps/loaded_head.h"

#include <fmt/format.h>

#include <utility>

#include "drafters/model_drafter.h"

namespace outrider {

Result<std::unique_ptr<LoadedHead>> LoadedHead::LoadEagle3(ModelOptions model, const ContextOptions& context,
                                                           Target& target) {
  // A head that uses weights of the target must find them on its devices.
  model.devices = target.options().devices;
  auto head = LlamaHead::LoadEagle3(model, context, target.unpadded());
  if (!head.ok()) return head.status();
  const VocabularyMatch match = CompareVocabularies(target.model()->tokenizer(), (*head)->model().tokenizer());
  if (!match.difference.empty()) {
    return InvalidArgument(fmt::format("EAGLE-3 head '{}' belongs to another model: {}", model.path, match.difference));
  }
  return std::unique_ptr<LoadedHead>(new LoadedHead(std::move(*head), target, match.common));
}

Result<std::unique_ptr<LoadedHead>> LoadedHead::OfTarget(const ContextOptions& context, Target& target) {
  auto head = LlamaHead::OfTarget(context, target.unpadded());
  if (!head.ok()) return head.status();
  const Token vocabulary = target.model()->tokenizer().vocabulary_size();
  return std::unique_ptr<LoadedHead>(new LoadedHead(std::move(*head), target, vocabulary));
}

LoadedHead::LoadedHead(std::unique_ptr<LlamaHead> head, Target& target, Token vocabulary)
    : llama_(std::move(head)),
      filters_(target.model(), target.engine().info().sequence_length),
      draft_{*llama_, filters_, vocabulary} {}

}  // namespace outrider
