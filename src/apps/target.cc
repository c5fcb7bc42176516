#include "apps/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>

#include "apps/machine_cache.h"
#include "apps/version.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/llama/backend.h"

namespace outrider {
namespace {

constexpr const char* kPadded = ", padded";

// A verdict is kept as these very words.
std::string VerdictText(const std::string& key, bool exact) {
  return fmt::format("{}\n{}\n", key, exact ? "exact" : "differs");
}

// What was found for `key`; nothing if it was not checked.
std::optional<bool> KeptVerdict(const std::string& key) {
  const auto text = ReadFile(MachineCachePath("exactness", key));
  for (const bool exact : {true, false}) {
    if (text == VerdictText(key, exact)) return exact;
  }
  return std::nullopt;
}

// The program's file: another build may compute otherwise.
std::string Build() {
  std::error_code error;
  const std::filesystem::path program = "/proc/self/exe";
  const auto size = std::filesystem::file_size(program, error);
  const auto time = std::filesystem::last_write_time(program, error).time_since_epoch().count();
  return fmt::format("{} {} {}", VersionLine(), size, time);
}

std::string Settings(const ModelOptions& model, const std::string& kernels, const ContextOptions& context,
                     const EngineInfo& info) {
  const std::string where = fmt::format("{} {} {} {} {} {} {}", model.gpu_layers, fmt::join(model.devices, " "),
                                        fmt::join(model.rpc_servers, " "), fmt::join(model.tensor_overrides, " "),
                                        model.split_mode, fmt::join(model.tensor_split, " "), model.main_gpu);
  const std::string how = fmt::format("{} {} {} {} {} {} {} {}", context.threads, context.threads_batch,
                                      static_cast<int>(context.flash_attention), context.kv_offload,
                                      context.cache_type_k, context.cache_type_v, model.repack, kernels);
  const std::string size = fmt::format("{} {} {} {} {} {}", info.n_sequences, info.sequence_length, info.max_batch,
                                       info.micro_batch, info.max_outputs, info.device_snapshots);
  return fmt::format("{}, {}, {}, {}", where, how, size, info.exactness);
}

}  // namespace

Result<std::unique_ptr<Target>> Target::Load(ModelOptions options, const ContextOptions& context, bool learn) {
  options.exactness = context.exactness;
  options.kernel_trials = MachineCachePath("kernels", fmt::format("{}, {}", Build(), ProcessorName()));
  auto model = LlamaModel::Load(options);
  if (!model.ok()) return model.status();
  auto engine = LlamaEngine::Create(*model, context);
  if (!engine.ok()) return engine.status();

  std::unique_ptr<Target> target(new Target());
  target->model_ = std::move(*model);
  target->unpadded_ = std::move(*engine);
  target->context_ = context;
  target->options_ = options;
  target->key_ =
      fmt::format("{:016x}, {},{}, {}, {}", target->model_->fingerprint(), Build(), ProcessorName(), DeviceSummary(),
                  Settings(options, target->model_->kernels(), context, target->unpadded_->info()));
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
  return key_ + (padded_ ? kPadded : "");
}

void Target::Pad() {
  padded_ = std::make_unique<PaddedEngine>(*unpadded_);
}

std::string Target::exactness() const {
  if (const auto exact = KeptVerdict(key())) return *exact ? "" : "outrider check found that they do with these flags";
  if (!padded_) return unpadded_->info().exactness;
  return model_->MixesExperts() ? "padding does not cover mixtures of experts" : "";
}

void Target::KeepVerdict(bool exact) {
  const std::string path = MachineCachePath("exactness", key());
  if (path.empty()) return;
  const Status status = KeepFile(path, VerdictText(key(), exact));
  if (!status.ok()) LogError("what was found is not kept: {}", status.message());
}

}  // namespace outrider
