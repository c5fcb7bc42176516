#include "apps/target.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/machine_cache.h"
#include "apps/version.h"
#include "base/file.h"
#include "base/log.h"

namespace outrider {
namespace {

// A verdict is kept as these very words.
std::string VerdictText(const std::string& key, bool exact) {
  return fmt::format("{}\n{}\n", key, exact ? "exact" : "differs");
}

bool WasFound(const std::string& key, bool exact) {
  std::ifstream file(MachineCachePath("exactness", key));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str() == VerdictText(key, exact);
}

}  // namespace

Result<std::unique_ptr<Target>> Target::Load(ModelOptions options, const ContextOptions& context) {
  options.exactness = context.exactness;
  auto model = LlamaModel::Load(options);
  if (!model.ok()) return model.status();
  auto engine = LlamaEngine::Create(*model, context);
  if (!engine.ok()) return engine.status();

  std::unique_ptr<Target> target(new Target());
  target->model_ = std::move(*model);
  target->unpadded_ = std::move(*engine);
  target->context_ = context;
  const EngineInfo& info = target->unpadded_->info();
  target->key_ = fmt::format("{:016x}, {},{}, layers {}, threads {} {}, rows {} {} {}, sequences {}, cache {} {}, {}",
                             target->model_->fingerprint(), VersionLine(), ProcessorName(), options.gpu_layers,
                             context.threads, context.threads_batch, info.max_batch, info.micro_batch, info.max_outputs,
                             info.n_sequences, context.cache_type_k, context.cache_type_v, info.exactness);
  if (context.exactness == Exactness::kPad) {
    if (!target->CanPad()) {
      return InvalidArgument("--exact pad does not work with this model: its memory cannot take padding back");
    }
    target->Pad();
  }
  if (context.exactness == Exactness::kAuto) target->LearnFromVerdicts();
  return target;
}

void Target::Pad() {
  padded_ = std::make_unique<PaddedEngine>(*unpadded_);
}

void Target::LearnFromVerdicts() {
  proven_ = WasFound(key_, true);
  if (!CanPad() || !WasFound(key_, false)) return;
  Pad();
  if (!WasFound(key(), true)) return padded_.reset();
  LogInfo("every step is padded to one shape, as outrider check found to be needed here (--exact off is faster)");
}

std::string Target::exactness() const {
  return proven_ || padded_ ? "" : unpadded_->info().exactness;
}

void Target::KeepVerdict(bool exact) {
  const std::string path = MachineCachePath("exactness", key());
  if (path.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const Status status = ReplaceFile(path, [&](File& file) { return file.Write(VerdictText(key(), exact)); });
  if (!status.ok()) LogError("what was found is not kept: {}", status.message());
}

}  // namespace outrider
