// Canonical execution: the one place that decides under which settings libllama's logits are independent of the batch's
// shape.
//
// The rules, measured and explained in docs/EXACTNESS.md: flash attention on, by our kernels or else with K and V not
// both f16 or f32, a memory of its own for each sequence, everything on the CPU, and weights in a layout whose kernels
// treat each row alike: ours do by construction, of ggml's width_probe.h finds out. With Exactness::kOff the fastest
// settings are chosen instead.
#pragma once

#include <ggml.h>
#include <llama.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/kernel_trials.h"
#include "engine/model_options.h"

namespace outrider {

struct WeightSettings {
  bool repack;                         // weights may be reordered at all
  std::vector<ggml_type> our_kernels;  // types that lie in our layout and are multiplied by our kernels
  std::vector<ggml_type> as_they_are;  // types that would be reordered, but must not be
  std::string caveat;                  // "" if rows do not depend on each other; else why they may
};

WeightSettings ChooseWeightSettings(const ModelOptions& options, KernelTrials& trials);

// A device other than the CPU that takes layers; "" if there is none.
std::string OtherDevice(const ModelOptions& options);

struct ContextSettings {
  llama_flash_attn_type flash_attention;
  ggml_type type_k;
  ggml_type type_v;
  bool unified_memory;
  std::string caveat;  // "" if the rules are kept; else which one the user's choice breaks
};

// `our_attention`: attention is computed by our kernels, which are independent of the batch's shape for f16 too.
Result<ContextSettings> ChooseContextSettings(const ContextOptions& options, bool our_attention);

}  // namespace outrider
