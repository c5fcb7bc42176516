#include "apps/loaded_draft_model.h"

#include <algorithm>

#include "engine/llama/head_file.h"

namespace outrider {

Result<std::unique_ptr<LoadedDraftModel>> LoadedDraftModel::Load(ModelOptions model_options, ContextOptions context,
                                                                 Pos sequence_length,
                                                                 const LlamaEngine* share_threads_with) {
  if (Status status = CheckIsNoHead(model_options.path); !status.ok()) return status;
  model_options.exactness = context.exactness = Exactness::kOff;
  auto model = LlamaModel::Load(model_options);
  if (!model.ok()) return Status(model.status().code(), "draft " + model.status().message());
  if (context.context_tokens == 0) {
    const Pos trained = (*model)->TrainedContext();
    context.context_tokens = context.n_sequences * (trained > 0 ? std::min(sequence_length, trained) : sequence_length);
  }
  context.max_outputs = context.n_sequences;
  // Off: snapshots only undo rows of the last batch, and a draft takes one batch per token.
  context.device_snapshots = false;
  auto engine = LlamaEngine::Create(*model, context, share_threads_with);
  if (!engine.ok()) return Status(engine.status().code(), "draft model: " + engine.status().message());
  if ((*engine)->info().rollback == Rollback::kNone) {
    return InvalidArgument("draft model: its memory cannot take tokens back, so it cannot draft");
  }
  return std::unique_ptr<LoadedDraftModel>(new LoadedDraftModel(std::move(*model), std::move(*engine)));
}

LoadedDraftModel::LoadedDraftModel(std::shared_ptr<LlamaModel> model, std::unique_ptr<LlamaEngine> engine)
    : model_(std::move(model)),
      engine_(std::move(engine)),
      filters_(model_, engine_->info().sequence_length),
      draft_{*engine_, model_->tokenizer(), filters_} {}

}  // namespace outrider
