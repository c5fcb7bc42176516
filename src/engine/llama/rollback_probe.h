// How can tokens be taken back from the memory of a model?
//
// Attention memory drops them. A running state (recurrent and hybrid models) is another matter: libllama keeps
// snapshots beside the state for some architectures, reads and writes states for all, and reports success also where
// the result is wrong. So before a context is made for such a model each way is tried out on a few tokens, in a small
// context of its own, and compared with the logits of a run that took nothing back.
#pragma once

#include <llama.h>

#include <cstddef>

#include "engine/engine.h"

namespace outrider {

struct RollbackFinding {
  Rollback way = Rollback::kDropCells;
  int device_snapshots = 0;       // that the backend should keep for each sequence
  bool states_on_device = false;  // reading and writing a state is quicker if it stays where it is
  bool rows_independent = true;   // a row's logits do not depend on how many are decoded with it
};

// `params`: of the context that is going to be made. `snapshot_memory`: bytes that all snapshots beside the states may
// take.
RollbackFinding ProbeRollback(llama_model* model, const llama_context_params& params, size_t snapshot_memory);

}  // namespace outrider
