// LlamaAdapter: an adapter (LoRA) that was loaded for a model. Immutable; every context of the model may apply it.
#pragma once

#include <llama.h>

#include <memory>
#include <string>

#include "base/free_with.h"
#include "base/status.h"
#include "engine/adapter_info.h"
#include "engine/llama/adapter_file.h"

namespace outrider {

struct LlamaAdapter {
  std::unique_ptr<llama_adapter_lora, FreeWith<llama_adapter_lora_free>> handle;
  AdapterInfo info;
  std::string caveat;  // "" if its products for a row do not depend on the rows beside it; else why they may
};

// Every reason why a file cannot be loaded comes back as one sentence. `target`: of the model; `device`: another one
// than the CPU that computes a part of the model, or ""; `our_kernels`: use them where they can multiply its weights.
Result<LlamaAdapter> LoadAdapter(llama_model* model, const std::string& path, const AdapterTarget& target,
                                 const std::string& device, bool our_kernels);

}  // namespace outrider
