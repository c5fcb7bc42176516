// A libllama context made from our options: what was asked for is checked, the settings that keep results exact are
// chosen (canonical.h), and how tokens can be taken back is tried out (rollback_probe.h).
#pragma once

#include <llama.h>

#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/llama/llama_model.h"
#include "engine/llama/rollback_probe.h"
#include "engine/model_options.h"

namespace outrider {

struct FreeLlamaContext {
  void operator()(llama_context* context) const { llama_free(context); }
};
using LlamaContextPtr = std::unique_ptr<llama_context, FreeLlamaContext>;

struct LlamaContext {
  LlamaContextPtr context;
  EngineInfo info;
  RollbackFinding rollback;
  size_t snapshot_bytes = 0;   // for copies of running states
  bool shared_memory = false;  // sequences share one memory
  int threads = 0, threads_batch = 0;
};

// Every reason why a context cannot be made comes back as one sentence.
Result<LlamaContext> MakeLlamaContext(LlamaModel& model, const ContextOptions& options);

// Whether libllama gives the inputs of these layers. On a model without the hooks it aborts the process, hence a list.
Status CheckHiddenLayers(const LlamaModel& model, std::span<const int> layers);

}  // namespace outrider
