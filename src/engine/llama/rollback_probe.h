// Finds out how tokens can be taken back from the memory of a model.
//
// Attention memory can drop single tokens. For a running state (recurrent and hybrid models) libllama has two ways: it
// keeps snapshots beside the state (some architectures), and it reads and writes states (all). Both report success even
// if the result is wrong. So before a context for such a model is made, each way is tried out on a few tokens, in a
// small context of its own, and the logits are compared with those of a run without a rollback.
#pragma once

#include <llama.h>

#include <cstddef>

#include "engine/engine.h"

namespace outrider {

struct RollbackFinding {
  Rollback way = Rollback::kDropCells;
  int device_snapshots = 0;       // how many the backend should keep for each sequence
  bool states_on_device = false;  // copies of states should stay on the device, because that is faster
  bool rows_independent = true;   // a row's logits do not depend on how many rows are decoded with it
};

// `params`: of the context that is going to be made. `snapshot_memory`: bytes that all snapshots beside the states may
// take.
RollbackFinding ProbeRollback(llama_model* model, const llama_context_params& params, size_t snapshot_memory);

}  // namespace outrider
