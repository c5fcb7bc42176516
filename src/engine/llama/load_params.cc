#include "engine/llama/load_params.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "engine/llama/backend.h"

namespace outrider {
namespace {

// Names of the tensors of feed-forward layers: of experts, and of layers without experts.
constexpr const char* kExperts = R"(\.ffn_(up|down|gate|gate_up)_(ch|)exps)";
constexpr const char* kDense = R"(\.ffn_(up|down|gate)\.)";

Result<llama_split_mode> ParseSplitMode(const std::string& name) {
  if (name == "none") return LLAMA_SPLIT_MODE_NONE;
  if (name == "layer") return LLAMA_SPLIT_MODE_LAYER;
  if (name == "row") return LLAMA_SPLIT_MODE_ROW;
  if (name == "tensor") return LLAMA_SPLIT_MODE_TENSOR;
  return InvalidArgument(fmt::format("--split-mode '{}' is not one of none, layer, row, tensor", name));
}

Result<llama_load_mode> ParseLoadMode(const ModelOptions& options) {
  const std::string& name = options.load_mode;
  if (name.empty()) {
    return options.mmap ? (options.mlock ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_AUTO)
                        : (options.mlock ? LLAMA_LOAD_MODE_MLOCK : LLAMA_LOAD_MODE_NONE);
  }
  if (name == "auto") return LLAMA_LOAD_MODE_AUTO;
  if (name == "none") return LLAMA_LOAD_MODE_NONE;
  if (name == "mmap") return LLAMA_LOAD_MODE_MMAP;
  if (name == "mlock") return LLAMA_LOAD_MODE_MLOCK;
  if (name == "mmap+mlock") return LLAMA_LOAD_MODE_MMAP_MLOCK;
  if (name == "dio") return LLAMA_LOAD_MODE_DIRECT_IO;
  return InvalidArgument(fmt::format("--load-mode '{}' is not one of auto, none, mmap, mlock, mmap+mlock, dio", name));
}

Result<llama_lazy_mode> ParseLazyMode(const std::string& name) {
  if (name == "on") return LLAMA_LAZY_MODE_ON;
  if (name == "auto") return LLAMA_LAZY_MODE_AUTO;
  if (name == "off") return LLAMA_LAZY_MODE_OFF;
  return InvalidArgument(fmt::format("--lazy-mode '{}' is not one of on, auto, off", name));
}

Status FillOverrides(const ModelOptions& options, LoadParams& load) {
  std::vector<ggml_backend_buffer_type_t> buffers;
  for (const std::string& text : options.tensor_overrides) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument(fmt::format("--override-tensor '{}' is not PATTERN=BUFFER", text));
    }
    auto buffer = FindBufferType(text.substr(equals + 1));
    if (!buffer.ok()) return buffer.status();
    load.patterns.push_back(text.substr(0, equals));
    buffers.push_back(*buffer);
  }
  const auto keep_on_cpu = [&](std::string pattern) {
    load.patterns.push_back(std::move(pattern));
    buffers.push_back(ggml_backend_dev_buffer_type(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)));
  };
  if (options.cpu_moe) keep_on_cpu(kExperts);
  for (int layer = 0; layer < options.n_cpu_moe; ++layer) keep_on_cpu(fmt::format(R"(blk\.{}{})", layer, kExperts));
  for (int layer = 0; layer < options.n_cpu_ffn; ++layer) keep_on_cpu(fmt::format(R"(blk\.{}{})", layer, kDense));
  if (buffers.empty()) return {};
  for (size_t i = 0; i < buffers.size(); ++i) load.overrides.push_back({load.patterns[i].c_str(), buffers[i]});
  load.overrides.push_back({nullptr, nullptr});
  load.params.tensor_buft_overrides = load.overrides.data();
  return {};
}

template <typename T>
bool ReadNumber(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<llama_rope_scaling_type> ParseRopeScaling(const std::string& name) {
  if (name.empty()) return LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED;
  if (name == "none") return LLAMA_ROPE_SCALING_TYPE_NONE;
  if (name == "linear") return LLAMA_ROPE_SCALING_TYPE_LINEAR;
  if (name == "yarn") return LLAMA_ROPE_SCALING_TYPE_YARN;
  return InvalidArgument(fmt::format("--rope-scaling '{}' is not one of none, linear, yarn", name));
}

Result<llama_model_kv_override> ParseKvOverride(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return InvalidArgument(fmt::format("--override-kv '{}': {}", text, why));
  };
  llama_model_kv_override override{};
  const size_t equals = text.find('='), colon = text.find(':', equals);
  if (equals == text.npos || equals == 0 || colon == text.npos) return wrong("it must be KEY=TYPE:VALUE");
  const std::string key = text.substr(0, equals), type = text.substr(equals + 1, colon - equals - 1);
  const std::string value = text.substr(colon + 1);
  if (key.size() >= sizeof override.key) return wrong("the key is too long");
  std::memcpy(override.key, key.c_str(), key.size() + 1);
  if (type == "int") {
    override.tag = LLAMA_KV_OVERRIDE_TYPE_INT;
    if (!ReadNumber(value, &override.val_i64)) return wrong("the value is not a whole number");
  } else if (type == "float") {
    override.tag = LLAMA_KV_OVERRIDE_TYPE_FLOAT;
    if (!ReadNumber(value, &override.val_f64) || !std::isfinite(override.val_f64)) {
      return wrong("the value is not a number");
    }
  } else if (type == "bool") {
    override.tag = LLAMA_KV_OVERRIDE_TYPE_BOOL;
    if (value != "true" && value != "false") return wrong("the value is not true or false");
    override.val_bool = value == "true";
  } else if (type == "str") {
    override.tag = LLAMA_KV_OVERRIDE_TYPE_STR;
    if (value.size() >= sizeof override.val_str) return wrong("the value has more than 127 bytes");
    std::memcpy(override.val_str, value.c_str(), value.size() + 1);
  } else {
    return wrong("the type is not one of int, float, bool, str");
  }
  return override;
}

Status FillLoadParams(const ModelOptions& options, LoadParams& load) {
  if (!options.devices.empty()) {
    auto devices = FindDevices(options.devices);
    if (!devices.ok()) return devices.status();
    load.devices = std::move(*devices);
    load.devices.push_back(nullptr);
    load.params.devices = load.devices.data();
  }
  if (Status status = FillOverrides(options, load); !status.ok()) return status;
  for (const std::string& text : options.kv_overrides) {
    auto override = ParseKvOverride(text);
    if (!override.ok()) return override.status();
    load.kv_overrides.push_back(*override);
  }
  if (!load.kv_overrides.empty()) {
    load.kv_overrides.emplace_back();  // an empty key ends the list
    load.params.kv_overrides = load.kv_overrides.data();
  }
  auto split_mode = ParseSplitMode(options.split_mode);
  if (!split_mode.ok()) return split_mode.status();
  if (options.tensor_split.size() > llama_max_devices()) {
    return InvalidArgument(fmt::format("--tensor-split names {} devices; at most {} are possible",
                                       options.tensor_split.size(), llama_max_devices()));
  }
  if (!options.tensor_split.empty()) {
    load.split = options.tensor_split;
    load.split.resize(llama_max_devices(), 0.0f);
    load.params.tensor_split = load.split.data();
  }
  auto load_mode = ParseLoadMode(options);
  if (!load_mode.ok()) return load_mode.status();
  auto lazy_mode = ParseLazyMode(options.lazy_mode);
  if (!lazy_mode.ok()) return lazy_mode.status();
  if (auto scaling = ParseRopeScaling(options.rope.scaling); !scaling.ok()) return scaling.status();
  load.params.split_mode = *split_mode;
  load.params.load_mode = *load_mode;
  load.params.lazy_mode = *lazy_mode;
  load.params.n_gpu_layers = options.gpu_layers;
  load.params.main_gpu = options.main_gpu;
  load.params.check_tensors = options.check_tensors;
  load.params.no_host = options.no_host;
  return {};
}

}  // namespace outrider
