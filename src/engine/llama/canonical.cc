#include "engine/llama/canonical.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace outrider {
namespace {

constexpr std::array<ggml_type, 9> kCacheTypes = {GGML_TYPE_F32,    GGML_TYPE_F16,  GGML_TYPE_BF16,
                                                  GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                                  GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1};

Result<ggml_type> ParseCacheType(const std::string& name, ggml_type when_empty) {
  if (name.empty()) return when_empty;
  std::string known;
  for (ggml_type type : kCacheTypes) {
    if (name == ggml_type_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(ggml_type_name(type));
  }
  return InvalidArgument(fmt::format("cache type '{}' is not one of {}", name, known));
}

bool IsFloat(ggml_type type) {
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

// The first of the rules that the settings break.
std::string Caveat(const CanonicalSettings& settings, const llama_model* model) {
  if (settings.flash_attention == LLAMA_FLASH_ATTN_TYPE_DISABLED) return "flash attention is off";
  if (IsFloat(settings.type_k) && IsFloat(settings.type_v)) {
    return fmt::format("the KV cache is {}/{}; bf16 or q8_0 keep outputs independent of the batch",
                       ggml_type_name(settings.type_k), ggml_type_name(settings.type_v));
  }
  if (settings.unified_memory) return "sequences share one KV memory";
  const llama_ftype type = llama_model_ftype(model);
  if (type == LLAMA_FTYPE_ALL_F32 || type == LLAMA_FTYPE_MOSTLY_F16 || type == LLAMA_FTYPE_MOSTLY_BF16) {
    return "the weights are not quantised, and one row and several rows take different kernels";
  }
  return "";
}

}  // namespace

Result<CanonicalSettings> ChooseSettings(const ContextOptions& options, const llama_model* model) {
  const bool exact = options.exactness == Exactness::kAuto;
  const ggml_type default_type = exact ? GGML_TYPE_BF16 : GGML_TYPE_F16;
  auto type_k = ParseCacheType(options.cache_type_k, default_type);
  if (!type_k.ok()) return type_k.status();
  auto type_v = ParseCacheType(options.cache_type_v, default_type);
  if (!type_v.ok()) return type_v.status();

  CanonicalSettings settings;
  settings.flash_attention =
      FlashAttentionType(options.flash_attention, exact ? FlashAttention::kOn : FlashAttention::kAuto);
  settings.type_k = *type_k;
  settings.type_v = *type_v;
  settings.unified_memory = false;  // also the faster choice: attention does not walk the other sequences' cells
  if (ggml_is_quantized(*type_v) && settings.flash_attention == LLAMA_FLASH_ATTN_TYPE_DISABLED) {
    return InvalidArgument("a quantised V cache needs flash attention: use -fa on, or -ctv f16");
  }
  settings.caveat = exact ? Caveat(settings, model) : "exactness was switched off";
  return settings;
}

}  // namespace outrider
