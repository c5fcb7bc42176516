#include "engine/llama/llama_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "engine/llama/adapter_file.h"
#include "engine/llama/backend.h"
#include "engine/llama/canonical.h"
#include "engine/llama/head_file.h"
#include "engine/llama/load_params.h"
#include "engine/llama/width_probe.h"
#include "kernels/attention_op.h"
#include "kernels/device_kernels.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

// Finds what is wrong with the file without reading more than its first bytes.
Status CheckFile(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path.empty()) return InvalidArgument("no model given: pass -m FILE.gguf");
  if (!fs::exists(path, error)) return InvalidArgument(fmt::format("model file '{}' does not exist", path));
  if (fs::is_directory(path, error))
    return InvalidArgument(fmt::format("'{}' is a directory; -m takes a .gguf file", path));
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  if (!file) return InvalidArgument(fmt::format("model file '{}' cannot be read: check its permissions", path));
  file.read(magic, sizeof magic);
  if (file.gcount() != sizeof magic || std::memcmp(magic, "GGUF", 4) != 0) {
    return InvalidArgument(fmt::format("'{}' is not a GGUF file", path));
  }
  return {};
}

// The sentence for a load that libllama refused, from the errors it logged.
Status ExplainLoadFailure(const std::string& path, const std::string& errors) {
  const auto mentions = [&](const char* words) { return errors.find(words) != std::string::npos; };
  if (mentions("unknown model architecture")) {
    const size_t from = errors.find("unknown model architecture");
    return Unsupported(fmt::format("model '{}': {}", path, errors.substr(from, errors.find('\n', from) - from)));
  }
  if (mentions("failed to allocate") || mentions("unable to allocate") || mentions("out of memory")) {
    return InvalidArgument(
        fmt::format("model '{}' does not fit into memory: use a smaller quantisation or model, or fewer layers on the "
                    "device (-ngl)",
                    path));
  }
  if (mentions("not within the file bounds") || mentions("corrupted or incomplete") || mentions("failed to read")) {
    return InvalidArgument(fmt::format("model '{}' is cut short or damaged: download it again", path));
  }
  const std::string last = errors.empty() ? "no reason was given" : errors.substr(0, errors.find('\n'));
  return InvalidArgument(fmt::format("model '{}' cannot be loaded: {}", path, last));
}

// Options that change what the model computes count too.
uint64_t Fingerprint(const ModelOptions& options) {
  Fnv1a hash = HashFileSamples(options.path);
  // The same file with other metadata is another model.
  for (const std::string& text : options.kv_overrides) hash.Add(text);
  if (const RopeOptions& r = options.rope; r != RopeOptions()) {
    hash.Add(fmt::format("{} {} {} {} {} {} {} {} {}", r.scaling, r.scale, r.freq_base, r.freq_scale, r.yarn_orig_ctx,
                         r.yarn_ext_factor, r.yarn_attn_factor, r.yarn_beta_slow, r.yarn_beta_fast));
  }
  return hash.hash();
}

// Chooses our kernels or ggml's for attention, as the options say. All models of a process share this setting. kAuto:
// the setting of the models that are loaded already; if there are none, the faster kernels.
Result<std::unique_ptr<kernels::AttentionHold>> ChooseAttention(Kernels choice, KernelTrials& trials) {
  bool ours = choice == Kernels::kOutrider;
  if (choice == Kernels::kAuto) {
    ours = kernels::AttentionIsHeld() ? kernels::AttentionIsOurs() : trials.OursForAttention();
  }
  auto hold = kernels::AttentionHold::Take(ours);
  if (hold == nullptr) return InvalidArgument("another model in this process was loaded with other --kernels");
  return hold;
}

bool DeviceIsServed(const std::string& name) {
  ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
  return device != nullptr && kernels::device::Serve(device);
}

Placement PlacementOf(const ModelOptions& options, const std::string& device, int layers) {
  if (device.empty()) return Placement::kCpu;
  const bool parts_on_cpu = options.cpu_moe || options.n_cpu_moe > 0 || options.n_cpu_ffn > 0 ||
                            !options.tensor_overrides.empty() ||
                            (options.gpu_layers >= 0 && options.gpu_layers <= layers);
  return parts_on_cpu ? Placement::kMixed : Placement::kDevice;
}

// `device`: another one that has a part of the model, or "". Layers from the last one on are there; the CPU computes
// the attention of the others, and products of those weights of any layer that lie in main memory.
std::string DescribeKernels(std::span<const ggml_type> types, const std::string& device, bool attention_on_cpu) {
  std::string ours;
  for (ggml_type type : types) ours += (ours.empty() ? "" : ", ") + std::string(ggml_type_name(type));
  if (attention_on_cpu && kernels::AttentionIsOurs()) ours += ours.empty() ? "attention" : " and attention";
  const bool on_device = !device.empty() && kernels::device::InUse() && DeviceIsServed(device);
  std::string text = ours.empty() ? "ggml" : fmt::format("outrider ({}) for {}", kernels::InstructionSet(), ours);
  if (on_device)
    return fmt::format("outrider on {}{}", device, ours.empty() ? "" : fmt::format("; on the CPU {}", text));
  return device.empty() || ours.empty() ? text : text + fmt::format(" on the CPU; {} computes the rest", device);
}

}  // namespace

Result<std::shared_ptr<LlamaModel>> LlamaModel::Load(const ModelOptions& options) {
  if (Status status = CheckFile(options.path); !status.ok()) return status;
  if (Status status = InitBackend(); !status.ok()) return status;
  if (Status status = AddRpcServers(options.rpc_servers); !status.ok()) return status;
  LoadParams load;
  if (Status status = FillLoadParams(options, load); !status.ok()) return status;
  if (options.kernels == Kernels::kOutrider && kernels::InstructionSet().empty()) {
    return InvalidArgument(
        "--kernels outrider: there are none for this CPU, which has neither AVX2 nor ARM's dot products; use auto");
  }
  if (options.kernels == Kernels::kOutrider && !options.repack) {
    return InvalidArgument("--kernels outrider reorders weights: it does not go with --no-repack");
  }
  // On a device ours are exact, but not yet as fast as ggml's for few requests (docs/GPU.md), so they must be asked
  // for.
  kernels::device::Use(options.kernels == Kernels::kOutrider);
  KernelTrials trials(options.kernel_trials);
  WeightSettings weights = ChooseWeightSettings(options, trials);
  if (options.repack && (!weights.repack || !weights.as_they_are.empty())) {
    LogInfo(
        "some weights stay as in the file: reordered for this CPU, rows would depend on each other (--exact off allows "
        "it)");
  }
  load.params.use_extra_bufts = weights.repack;
  // Otherwise libllama would prefer memory that a device can read to our layout, even if the device is not used.
  if (!weights.our_kernels.empty()) load.params.no_host = true;
  load.params.load_mtp = options.heads && FileHasMtpHead(options.path);
  auto attention = ChooseAttention(options.kernels, trials);
  if (!attention.ok()) return attention.status();
  ErrorLogCapture errors;
  llama_model* model;
  std::vector<ggml_type> ours;
  {
    const kernels::TakeWeights take(weights.our_kernels, weights.as_they_are);
    model = llama_model_load_from_file(options.path.c_str(), load.params);
    ours = take.Taken();
  }
  if (model == nullptr) return ExplainLoadFailure(options.path, errors.text());
  const std::string device = OtherDevice(options);
  const Placement placement = PlacementOf(options, device, llama_model_n_layer(model));
  const bool attention_on_cpu =
      device.empty() || (options.gpu_layers >= 0 && options.gpu_layers <= llama_model_n_layer(model));
  std::shared_ptr<LlamaModel> loaded(
      new LlamaModel(model, options.rope, Fingerprint(options), std::move(weights.caveat), placement,
                     DescribeKernels(ours, device, attention_on_cpu), std::move(*attention)));
  if (loaded->on_device() && loaded->MixesExperts() && loaded->exactness_caveat_.empty()) {
    loaded->exactness_caveat_ = fmt::format("on {} products of experts depend on the number of rows", device);
  }
  loaded->has_head_ = load.params.load_mtp;
  if (!llama_model_has_decoder(model)) {
    return Unsupported(
        fmt::format("model '{}' is an encoder; outrider serves models that generate text", options.path));
  }
  if (Status status = loaded->LoadAdapters(options); !status.ok()) return status;
  return loaded;
}

// Adapters must be loaded before contexts are made: these are sized for the graphs with all of them.
Status LlamaModel::LoadAdapters(const ModelOptions& options) {
  if (options.adapters.empty()) return {};
  const AdapterTarget target{Architecture(), WeightShapes(options.path), WeightsOfType(options.path, GGML_TYPE_NVFP4)};
  const bool ours = options.kernels != Kernels::kGgml && !on_device() && !kernels::InstructionSet().empty();
  for (const std::string& path : options.adapters) {
    auto adapter = LoadAdapter(handle(), path, target, OtherDevice(options), ours);
    if (!adapter.ok()) return adapter.status();
    if (exactness_caveat_.empty()) exactness_caveat_ = adapter->caveat;
    adapters_.push_back(std::move(*adapter));
  }
  return {};
}

std::string FormatParameterCount(uint64_t parameters) {
  struct Unit {
    double size;
    double from;  // smallest number that is written in this unit
    char letter;
  };
  const auto count = static_cast<double>(parameters);
  for (const Unit& unit : {Unit{1e9, 0.5e9, 'B'}, Unit{1e6, 999.5e3, 'M'}, Unit{1e3, 1e3, 'K'}}) {
    if (count < unit.from) continue;
    const double value = count / unit.size;
    std::string digits = fmt::format("{:.{}f}", value, value < 99.95 ? 1 : 0);
    if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
    return digits + unit.letter;
  }
  return fmt::format("{}", parameters);
}

std::string LlamaModel::Architecture() const {
  char name[64];
  const bool given = llama_model_meta_val_str(handle(), "general.architecture", name, sizeof name) >= 0;
  return given ? name : "";
}

std::string LlamaModel::Description() const {
  return fmt::format("{} {} {}", Architecture(), FormatParameterCount(ParameterCount()), FileType());
}

bool LlamaModel::MixesExperts() const {
  char count[32];
  const std::string key = Architecture() + ".expert_count";
  return llama_model_meta_val_str(handle(), key.c_str(), count, sizeof count) > 0 && std::strcmp(count, "0") != 0;
}

std::vector<int> LlamaModel::HeadSizes() const {
  std::vector<int> sizes;
  char text[32];
  const std::string architecture = Architecture();
  // The file names the size of a head only if it is not the size of the embedding divided by the number of heads.
  const int usual = EmbeddingSize() / std::max(1, llama_model_n_head(handle()));
  for (const char* name : {"key_length", "value_length", "key_length_swa", "value_length_swa", "key_length_mla",
                           "value_length_mla", "key_length_mla_swa", "value_length_mla_swa"}) {
    const std::string key = fmt::format("{}.attention.{}", architecture, name);
    const bool given = llama_model_meta_val_str(handle(), key.c_str(), text, sizeof text) > 0;
    sizes.push_back(given ? std::atoi(text) : usual);
  }
  return sizes;
}

Attention LlamaModel::attention() const {
  if (Architecture().empty()) return Attention::kGgml;
  const std::vector<int> sizes = HeadSizes();
  const auto all = [&](auto covers) { return std::all_of(sizes.begin(), sizes.end(), covers); };
  const bool on_cpu =
      kernels::AttentionIsOurs() && all([](int values) { return values % kernels::kHeadValuesStep == 0; });
  const bool on_device = kernels::device::InUse() && all(kernels::device::HasAttention);
  switch (placement_) {
    case Placement::kCpu:
      return on_cpu ? Attention::kOurs : Attention::kGgml;
    case Placement::kMixed:
      return on_cpu && on_device ? Attention::kOursOnDevice : Attention::kGgml;
    case Placement::kDevice:
      return on_device ? Attention::kOursOnDevice : Attention::kGgml;
  }
  return Attention::kGgml;
}

std::string LlamaModel::FileType() const {
  return llama_ftype_name(llama_model_ftype(handle()));
}

std::string LlamaModel::RankTemplate() const {
  const char* source = llama_model_chat_template(handle(), "rerank");
  return source == nullptr ? "" : source;
}

std::string LlamaModel::ChatTemplate() const {
  const char* source = llama_model_chat_template(handle(), nullptr);
  return source ? source : "";
}

}  // namespace outrider
