// A head with what drafters need beside it: an EAGLE-3 file, or the head in the target's own file.
#pragma once

#include <memory>
#include <string>

#include "apps/target.h"
#include "base/status.h"
#include "drafters/registry.h"
#include "engine/llama/llama_filters.h"
#include "engine/llama/llama_head.h"
#include "engine/model_options.h"

namespace outrider {

class LoadedHead {
 public:
  // The target must outlive it.
  static Result<std::unique_ptr<LoadedHead>> LoadEagle3(ModelOptions model, const ContextOptions& context,
                                                        Target& target);
  static Result<std::unique_ptr<LoadedHead>> OfTarget(const ContextOptions& context, Target& target);

  const DraftHead& head() const { return draft_; }
  std::string Description() const { return llama_->model().Description(); }

 private:
  LoadedHead(std::unique_ptr<LlamaHead> head, Target& target, Token vocabulary);

  std::unique_ptr<LlamaHead> llama_;
  LlamaFilterFactory filters_;
  DraftHead draft_;
};

}  // namespace outrider
