// A draft model with its engine, as drafters use it: beside a target, or served to other machines.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "drafters/model_drafter.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/llama_filters.h"
#include "engine/model_options.h"

namespace outrider {

class LoadedDraftModel {
 public:
  // Drafts are guesses, so the fastest settings are used. `context.context_tokens` 0 = `sequence_length` for each
  // sequence, or what the model was trained for if that is less. `share_threads_with`: an engine that never computes at
  // the same time; null if there is none.
  static Result<std::unique_ptr<LoadedDraftModel>> Load(ModelOptions model, ContextOptions context, Pos sequence_length,
                                                        const LlamaEngine* share_threads_with);

  const DraftModel& model() const { return draft_; }
  std::string Description() const { return model_->Description(); }

 private:
  LoadedDraftModel(std::shared_ptr<LlamaModel> model, std::unique_ptr<LlamaEngine> engine);

  std::shared_ptr<LlamaModel> model_;
  std::unique_ptr<LlamaEngine> engine_;
  LlamaFilterFactory filters_;
  DraftModel draft_;
};

}  // namespace outrider
