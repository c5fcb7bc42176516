#include "apps/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <filesystem>
#include <optional>

#include "apps/machine_cache.h"
#include "apps/version.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/head_file.h"

namespace outrider {
namespace {

constexpr const char* kPadded = ", padded";

// The content of a verdict's file. It contains the whole key, because the file's name is only a hash of it.
std::string VerdictText(const std::string& key, bool exact) {
  return fmt::format("{}\n{}\n", key, exact ? "exact" : "differs");
}

// The verdict for `key`; nothing if it was never checked.
std::optional<bool> KeptVerdict(const std::string& key) {
  const auto text = ReadFile(MachineCachePath("exactness", key));
  for (const bool exact : {true, false}) {
    if (text == VerdictText(key, exact)) return exact;
  }
  return std::nullopt;
}

// Identifies the program's file: another build may compute differently.
std::string Build() {
  std::error_code error;
  const std::filesystem::path program = "/proc/self/exe";
  const auto size = std::filesystem::file_size(program, error);
  const auto time = std::filesystem::last_write_time(program, error).time_since_epoch().count();
  return fmt::format("{} {} {}", VersionLine(), size, time);
}

// Logits of steps of several widths, after enough tokens for attention kernels to change.
Result<std::vector<float>> SampleLogits(Engine& engine, const AdapterSet& adapters) {
  constexpr Pos kTokens = 250;
  const EngineInfo& info = engine.info();
  std::vector<float> all;
  Batch batch;
  const auto decode = [&](Pos rows, bool ask) {
    batch.Clear(adapters);
    const Pos begin = engine.Length(0), end = std::min(begin + rows, info.sequence_length);
    for (Pos pos = begin; pos < end; ++pos) batch.Add({(pos * 31 + 7) % info.n_vocab, pos, 0, ask});
    Status status = batch.empty() ? Status() : engine.Decode(batch);
    for (int row = 0; ask && status.ok() && row < batch.size(); ++row) {
      const std::span<const float> logits = engine.Logits(row);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return status;
  };
  const Pos before = std::min(kTokens, info.sequence_length / 2);
  while (engine.Length(0) < before) {
    if (Status status = decode(std::min(before - engine.Length(0), info.max_batch), false); !status.ok()) return status;
  }
  for (const int width : {1, 2, 3, 4, 8, 16}) {
    if (Status status = decode(std::min({width, info.max_batch, info.max_outputs}), true); !status.ok()) return status;
  }
  engine.TruncateTo(0, 0);
  return all;
}

// Without adapters, with each of them, and with all: in which order libllama adds their changes may differ between two
// copies.
Result<bool> ComputeTheSame(Engine& one, Engine& other) {
  const int n_adapters = one.info().n_adapters;
  std::vector<AdapterSet> sets = {{}, AdaptersOf(std::vector<float>(static_cast<size_t>(n_adapters), 1))};
  for (int id = 0; id < n_adapters; ++id) sets.push_back({{id, 1}});
  for (const AdapterSet& adapters : sets) {
    auto logits = SampleLogits(one, adapters), others = SampleLogits(other, adapters);
    if (!logits.ok()) return logits.status();
    if (!others.ok()) return others.status();
    if (*logits != *others) return false;
  }
  return true;
}

// The model and what is loaded with it.
std::string Weights(const LlamaModel& model) {
  std::string text = fmt::format("{:016x}", model.fingerprint());
  for (const LlamaAdapter& adapter : model.adapters()) text += fmt::format("+{:016x}", adapter.info.fingerprint);
  return text;
}

std::string Settings(const ModelOptions& model, const std::string& kernels, const ContextOptions& context,
                     const EngineInfo& info) {
  const std::string where =
      fmt::format("{} {} {} {} {} {} {} {} {} {}", model.gpu_layers, fmt::join(model.devices, " "),
                  fmt::join(model.rpc_servers, " "), fmt::join(model.tensor_overrides, " "), model.split_mode,
                  fmt::join(model.tensor_split, " "), model.main_gpu, model.cpu_moe, model.n_cpu_moe, model.n_cpu_ffn);
  const std::string how =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", context.cpu.mask, context.cpu.range, context.op_offload,
                  context.threads, context.threads_batch, static_cast<int>(context.flash_attention), context.kv_offload,
                  context.cache_type_k, context.cache_type_v, model.repack, kernels);
  const std::string size = fmt::format("{} {} {} {} {} {}", info.n_sequences, info.sequence_length, info.max_batch,
                                       info.micro_batch, info.max_outputs, info.device_snapshots);
  return fmt::format("{}, {}, {}, {}", where, how, size, info.exactness);
}

}  // namespace

Result<std::unique_ptr<Target>> Target::Load(ModelOptions options, const ContextOptions& context, bool learn) {
  if (Status status = CheckIsNoHead(options.path); !status.ok()) return status;
  options.exactness = context.exactness;
  options.kernel_trials = MachineCachePath("kernels", fmt::format("{}, {}", Build(), ProcessorName()));
  auto model = LlamaModel::Load(options);
  if (!model.ok()) return model.status();
  auto engine = LlamaEngine::Create(*model, context);
  if (!engine.ok()) return engine.status();

  std::unique_ptr<Target> target(new Target());
  target->copies_.push_back({std::move(*model), std::move(*engine), nullptr});
  target->context_ = context;
  target->options_ = options;
  target->key_ = fmt::format("{}, {},{}, {}, {}", Weights(*target->model()), Build(), ProcessorName(), DeviceSummary(),
                             Settings(options, target->model()->kernels(), context, target->unpadded().info()));
  if (context.exactness == Exactness::kPad) {
    if (!target->CanPad()) {
      return InvalidArgument("--exact pad does not work with this model: its memory cannot take padding back");
    }
    target->Pad();
  }
  const bool may_pad = learn && context.exactness == Exactness::kAuto && target->CanPad();
  if (may_pad && KeptVerdict(target->key_) == false && KeptVerdict(target->key_ + kPadded) == true) {
    target->Pad();
    LogInfo("every step is padded to one shape, as outrider check found to be needed here (--exact off is faster)");
  }
  return target;
}

std::string Target::key() const {
  return key_ + (padded() ? kPadded : "");
}

void Target::Pad() {
  assert(!replicated());
  Copy& copy = copies_.front();
  copy.padded = std::make_unique<PaddedEngine>(*copy.unpadded);
}

Status Target::AddReplica(const std::vector<std::string>& devices) {
  if (!CanPad())
    return InvalidArgument("--replica does not work with this model: its memory cannot drop single tokens");
  const bool on_cpu = devices == std::vector<std::string>{"none"};
  Copy copy{model(), nullptr, nullptr};
  if (!on_cpu || model()->on_device()) {
    ModelOptions options = options_;
    options.devices = devices;
    auto loaded = LlamaModel::Load(options);
    if (!loaded.ok()) return loaded.status();
    copy.model = std::move(*loaded);
  }
  auto engine = LlamaEngine::Create(copy.model, context_);
  if (!engine.ok()) return engine.status();
  copy.unpadded = std::move(*engine);
  if (padded()) copy.padded = std::make_unique<PaddedEngine>(*copy.unpadded);
  auto same = ComputeTheSame(copies_.front().engine(), copy.engine());
  if (!same.ok()) return same.status();
  if (!*same && context_.exactness != Exactness::kOff) {
    return InvalidArgument(fmt::format(
        "the replica on {} computes other numbers than the target, so the text would depend on which of them is the "
        "quicker; use a device of the same kind (or --exact off)",
        fmt::join(devices, ", ")));
  }
  copies_.push_back(std::move(copy));
  std::vector<Engine*> engines;
  for (const Copy& each : copies_) engines.push_back(&each.engine());
  together_ = std::make_unique<ReplicatedEngine>(engines);
  return {};
}

std::string Target::exactness() const {
  if (const auto exact = KeptVerdict(key())) return *exact ? "" : "outrider check found that they do with these flags";
  if (!padded()) return unpadded().info().exactness;
  return model()->MixesExperts() ? "padding does not cover mixtures of experts" : "";
}

std::vector<std::string> Target::ExactnessRestsOn() const {
  if (!exactness().empty()) return {};
  std::vector<std::string> reasons = {"each draw depends on nothing but seed, position and logits"};
  if (padded()) {
    reasons.push_back("every step is padded to one shape");
  } else {
    reasons.push_back(
        fmt::format("kernels treat each row alike, by construction or as probed when the model was loaded: {}",
                    model()->kernels()));
    reasons.push_back("each sequence has a memory of its own");
  }
  if (KeptVerdict(key()).has_value()) reasons.push_back("outrider check found no difference with these flags here");
  return reasons;
}

void Target::KeepVerdict(bool exact) {
  const std::string path = MachineCachePath("exactness", key());
  if (path.empty()) return;
  const Status status = KeepFile(path, VerdictText(key(), exact));
  if (!status.ok()) LogError("what was found is not kept: {}", status.message());
}

}  // namespace outrider
