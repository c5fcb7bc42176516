// Target: the model that answers, ready to decode in the way that keeps its texts the same.
//
// Where the settings of engine/llama/canonical.h are enough, that is the plain engine. Where they are not (most
// devices), `--exact pad` decodes every row in a batch of one shape (engine/padded_engine.h). `--exact auto` does so
// where `outrider check` has found that the plain engine differs and padding helps; what it found is kept with the
// machine.
#pragma once

#include <memory>
#include <string>

#include "engine/llama/llama_engine.h"
#include "engine/model_options.h"
#include "engine/padded_engine.h"

namespace outrider {

class Target {
 public:
  // `learn`: whether `--exact auto` goes by what was found before.
  static Result<std::unique_ptr<Target>> Load(ModelOptions model, const ContextOptions& context, bool learn = true);

  const std::shared_ptr<LlamaModel>& model() const { return model_; }
  Engine& engine() { return padded_ ? static_cast<Engine&>(*padded_) : *unpadded_; }
  const LlamaEngine& unpadded() const { return *unpadded_; }
  const ContextOptions& context() const { return context_; }
  const ModelOptions& options() const { return options_; }

  // Model, build, machine and settings: what decides how long a step takes and whether it is exact.
  std::string key() const;

  bool padded() const { return padded_ != nullptr; }
  bool CanPad() const { return unpadded_->info().rollback == Rollback::kDropCells; }
  void Pad();

  // "" if texts depend on nothing but their requests, as far as is known; else why they may.
  std::string exactness() const;

  // What `check` found out about the way it decodes now; for the next start.
  void KeepVerdict(bool exact);

 private:
  Target() = default;

  std::shared_ptr<LlamaModel> model_;
  std::unique_ptr<LlamaEngine> unpadded_;
  std::unique_ptr<PaddedEngine> padded_;
  ContextOptions context_;
  ModelOptions options_;
  std::string key_;
};

}  // namespace outrider
