// Makes a libllama context from our options: checks them, chooses the settings that keep results exact (canonical.h),
// and finds out by trial how tokens can be taken back (rollback_probe.h).
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

// Makes every context of a model encode positions in the same way.
void SetRope(const RopeOptions& rope, llama_context_params* params);

// Whether libllama can give the inputs of these layers, and the state after the last one. For other architectures it
// would abort the process or give nothing, so we have lists of those that can.
Status CheckHiddenLayers(const LlamaModel& model, std::span<const int> layers);

}  // namespace outrider
