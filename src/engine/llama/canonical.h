// Canonical execution: the one place that decides under which settings libllama's logits are independent of the batch's
// shape.
//
// The rules are measured and explained in docs/EXACTNESS.md:
//   - Flash attention is on; K and V must not both be f16 or f32, unless our kernels compute the attention.
//   - Each sequence has a memory of its own.
//   - Everything is computed on the CPU, or by our kernels on a device (kernels/device_kernels.h).
//   - Weights lie in a layout whose kernels compute a row independently of the other rows. Our kernels do so by
//     construction; for ggml's kernels it is tested (width_probe.h).
// With Exactness::kOff the fastest settings are chosen instead.
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
  std::vector<ggml_type> as_they_are;  // types that ggml would reorder, but must not
  std::string caveat;                  // "" if rows do not depend on each other; else why they may
};

WeightSettings ChooseWeightSettings(const ModelOptions& options, KernelTrials& trials);

// The name of a device other than the CPU that computes a part of the model; "" if there is none.
std::string OtherDevice(const ModelOptions& options);

// Who computes attention.
enum class Attention {
  kGgml,
  kOurs,          // our kernels, on the CPU
  kOursOnDevice,  // our kernels, on a device; only if K and V are f16
};

struct ContextSettings {
  llama_flash_attn_type flash_attention;
  ggml_type type_k;
  ggml_type type_v;
  bool unified_memory;
  std::string caveat;  // "" if the settings follow the rules; else the rule that the user's choice breaks
};

// Our attention is independent of the batch's shape for f16 too.
Result<ContextSettings> ChooseContextSettings(const ContextOptions& options, Attention attention);

}  // namespace outrider
