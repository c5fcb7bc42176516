// Canonical execution: the one place that decides under which settings libllama's logits are independent of the batch's
// shape.
//
// The rules, measured and explained in docs/EXACTNESS.md: flash attention on, K and V not both f16 or f32, a memory of
// its own for each sequence, and weight repacking left as it is. With Exactness::kOff the fastest settings are chosen
// instead.
#pragma once

#include <ggml.h>
#include <llama.h>

#include <string>

#include "base/status.h"
#include "engine/model_options.h"

namespace outrider {

struct CanonicalSettings {
  llama_flash_attn_type flash_attention;
  ggml_type type_k;
  ggml_type type_v;
  bool unified_memory;
  std::string caveat;  // "" if the rules are kept; else which one the user's choice breaks
};

Result<CanonicalSettings> ChooseSettings(const ContextOptions& options, const llama_model* model);

}  // namespace outrider
