#include "engine/llama/canonical.h"

#include <fmt/format.h>
#include <ggml-backend.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/width_probe.h"
#include "kernels/device_kernels.h"
#include "kernels/layout.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

constexpr std::array<ggml_type, 9> kCacheTypes = {GGML_TYPE_F32,    GGML_TYPE_F16,  GGML_TYPE_BF16,
                                                  GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                                  GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1};

Result<ggml_type> ParseCacheType(const char* flag, const std::string& name, ggml_type when_empty) {
  if (name.empty()) return when_empty;
  std::string known;
  for (ggml_type type : kCacheTypes) {
    if (name == ggml_type_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(ggml_type_name(type));
  }
  return InvalidArgument(fmt::format("{} '{}' is not one of {}", flag, name, known));
}

bool IsF16OrF32(ggml_type type) {
  return type == GGML_TYPE_F16 || type == GGML_TYPE_F32;
}

llama_flash_attn_type FlashAttentionType(FlashAttention choice, FlashAttention when_auto) {
  if (choice == FlashAttention::kAuto) choice = when_auto;
  switch (choice) {
    case FlashAttention::kOn:
      return LLAMA_FLASH_ATTN_TYPE_ENABLED;
    case FlashAttention::kOff:
      return LLAMA_FLASH_ATTN_TYPE_DISABLED;
    case FlashAttention::kAuto:
      break;
  }
  return LLAMA_FLASH_ATTN_TYPE_AUTO;
}

// The first rule that the settings break; "" if they break none.
std::string Caveat(const ContextSettings& settings, Attention attention) {
  if (settings.flash_attention == LLAMA_FLASH_ATTN_TYPE_DISABLED) return "flash attention is off";
  if (attention == Attention::kOursOnDevice && (settings.type_k != GGML_TYPE_F16 || settings.type_v != GGML_TYPE_F16)) {
    return fmt::format("the KV cache is {}/{}; on this device f16 keeps outputs independent of the batch",
                       ggml_type_name(settings.type_k), ggml_type_name(settings.type_v));
  }
  if (attention == Attention::kGgml && IsF16OrF32(settings.type_k) && IsF16OrF32(settings.type_v)) {
    return fmt::format("the KV cache is {}/{}; bf16 or q8_0 keep outputs independent of the batch",
                       ggml_type_name(settings.type_k), ggml_type_name(settings.type_v));
  }
  if (settings.unified_memory) return "sequences share one KV memory";
  return "";
}

// Reordered weights, ours or ggml's, need memory of this process, whereas the system may drop pages of a mapped file at
// any time. So a model that is larger than the memory can run mapped, though slowly, but not reordered.
bool TooLargeToCopy(const ModelOptions& options) {
  if (options.kernels != Kernels::kAuto || !options.mmap || !options.repack) return false;
  constexpr double kShare = 0.8;
  const uint64_t memory = TotalMemory(), needed = FileBytes(options.path);
  if (memory == 0 || static_cast<double>(needed) < kShare * static_cast<double>(memory)) return false;
  LogInfo(
      "the weights stay in the mapped file and are not reordered for this CPU: a copy of {:.1f} GB would not fit well "
      "into {:.1f} GB of memory (--kernels outrider reorders them all the same)",
      static_cast<double>(needed) / 1e9, static_cast<double>(memory) / 1e9);
  return true;
}

// Why products on the device may depend on the number of rows; "" if they do not. The kernels that are independent are
// ours; that they are is tested, on this device.
std::string DeviceCaveat(const std::string& name, const std::vector<WeightType>& types) {
  ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
  const bool has_ours = device != nullptr && kernels::device::Serve(device);
  if (!has_ours || !kernels::device::InUse()) {
    return fmt::format("part of the model runs on {}, whose results depend on the number of rows{}", name,
                       has_ours ? " (not with --kernels outrider, which is slower for few requests)" : "");
  }
  for (const WeightType& weights : types) {
    if (!kernels::device::HasProduct(weights.type) || !RowsAreIndependentOn(device, weights.type)) {
      return fmt::format("on {} results of {} weights depend on the number of rows", name,
                         ggml_type_name(weights.type));
    }
  }
  return "";
}

}  // namespace

std::string OtherDevice(const ModelOptions& options) {
  for (const std::string& text : options.tensor_overrides) {
    if (!text.ends_with("=CPU")) return text.substr(text.rfind('=') + 1);
  }
  if (options.gpu_layers == 0 || (options.devices.size() == 1 && options.devices[0] == "none")) return "";
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    const std::string name = ggml_backend_dev_name(device);
    const bool asked_for = options.devices.empty() ||
                           std::find(options.devices.begin(), options.devices.end(), name) != options.devices.end();
    const auto type = ggml_backend_dev_type(device);
    if (asked_for && type != GGML_BACKEND_DEVICE_TYPE_CPU && type != GGML_BACKEND_DEVICE_TYPE_ACCEL) return name;
  }
  return "";
}

WeightSettings ChooseWeightSettings(const ModelOptions& options, KernelTrials& trials) {
  const std::string device = OtherDevice(options);
  WeightSettings settings{options.repack && !TooLargeToCopy(options), {}, {}, ""};
  const bool exact = options.exactness != Exactness::kOff;
  if (!exact) settings.caveat = "exactness was switched off";
  const std::vector<WeightType> types = WeightTypes(options.path);
  if (exact && !device.empty()) settings.caveat = DeviceCaveat(device, types);
  const bool checks_rows = settings.caveat.empty();
  // Without exactness a device may compute wide products of the CPU's weights, for which they must be as in the file.
  const bool device_may_help = !device.empty() && !exact && options.kernels == Kernels::kAuto;
  const bool may_be_ours =
      settings.repack && options.kernels != Kernels::kGgml && !kernels::InstructionSet().empty() && !device_may_help;
  for (const WeightType& weights : types) {
    const bool has_ours = may_be_ours && kernels::HasLayout(weights.type);
    bool ours = has_ours && (options.kernels == Kernels::kOutrider || trials.OursFor(weights.type));
    // Where ggml's reordered weights were the faster, but are not exact, ours are better than weights as in the file.
    const bool probes = checks_rows && !(ours && weights.in_tiles);
    const bool may_repack = probes && settings.repack && RowsAreIndependent(weights.type, WeightLayout::kRepacked);
    if (probes && !may_repack) ours = has_ours;
    if (ours) settings.our_kernels.push_back(weights.type);
    if (!probes || may_repack || (ours && weights.in_tiles)) continue;
    if (!RowsAreIndependent(weights.type, WeightLayout::kPlain)) {
      settings.caveat =
          fmt::format("on this CPU results of {} weights depend on the number of rows", ggml_type_name(weights.type));
    } else if (settings.repack) {
      settings.as_they_are.push_back(weights.type);
    }
  }
  if (!settings.caveat.empty()) settings.as_they_are.clear();  // results are not exact in any case
  if (settings.our_kernels.empty() && !settings.as_they_are.empty()) settings.repack = false;
  return settings;
}

Result<ContextSettings> ChooseContextSettings(const ContextOptions& options, Attention attention) {
  const bool exact = options.exactness != Exactness::kOff;
  const ggml_type default_type = exact && attention == Attention::kGgml ? GGML_TYPE_BF16 : GGML_TYPE_F16;
  auto type_k = ParseCacheType("--cache-type-k", options.cache_type_k, default_type);
  if (!type_k.ok()) return type_k.status();
  auto type_v = ParseCacheType("--cache-type-v", options.cache_type_v, default_type);
  if (!type_v.ok()) return type_v.status();

  ContextSettings settings;
  settings.flash_attention =
      FlashAttentionType(options.flash_attention, exact ? FlashAttention::kOn : FlashAttention::kAuto);
  settings.type_k = *type_k;
  settings.type_v = *type_v;
  settings.unified_memory = false;  // this is also faster: attention does not read the cells of other sequences
  if (ggml_is_quantized(*type_v) && settings.flash_attention == LLAMA_FLASH_ATTN_TYPE_DISABLED) {
    return InvalidArgument("a quantised V cache needs flash attention: use -fa on, or -ctv f16");
  }
  settings.caveat = exact ? Caveat(settings, attention) : "exactness was switched off";
  return settings;
}

}  // namespace outrider
