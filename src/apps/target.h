// Target: the model that answers, set up to decode in the way in which the same request gives the same text.
//
// Where the settings of engine/llama/canonical.h are enough, that is the plain engine. Where they are not (on most
// devices), `--exact pad` decodes every row in a batch of one shape (engine/padded_engine.h). `--exact auto` does so
// where `outrider check` has found that the plain engine is not exact and that padding is; these verdicts are kept in
// the machine's cache (apps/machine_cache.h).
//
// With a replica (`--replica`) there are two copies of the model, which verify consecutive parts of a draft at the same
// time (engine/replicated_engine.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/llama/llama_engine.h"
#include "engine/model_options.h"
#include "engine/padded_engine.h"
#include "engine/replicated_engine.h"

namespace outrider {

class Target {
 public:
  // `learn`: whether `--exact auto` uses the verdicts of earlier checks.
  static Result<std::unique_ptr<Target>> Load(ModelOptions model, const ContextOptions& context, bool learn = true);

  // Another copy of the model, on `devices` ("none" = CPU); once, and padded if this is. kInvalidArgument if it would
  // not compute the same.
  Status AddReplica(const std::vector<std::string>& devices);

  const std::shared_ptr<LlamaModel>& model() const { return copies_.front().model; }
  Engine& engine() { return together_ ? static_cast<Engine&>(*together_) : copies_.front().engine(); }
  Lookahead* lookahead() { return together_.get(); }  // null unless there are replicas
  const LlamaEngine& unpadded() const { return *copies_.front().unpadded; }
  const ContextOptions& context() const { return context_; }
  const ModelOptions& options() const { return options_; }

  // Model, build, machine and settings: everything that decides how long a step takes and whether it is exact.
  std::string key() const;

  bool padded() const { return copies_.front().padded != nullptr; }
  bool CanPad() const { return unpadded().info().rollback == Rollback::kDropCells; }
  void Pad();

  bool replicated() const { return together_ != nullptr; }

  // "" if a text depends on its request only, as far as is known; else the reason why it may not.
  std::string exactness() const;

  // What that rests on, in sentences for people; empty if it does not hold.
  std::vector<std::string> ExactnessRestsOn() const;

  // Keeps the verdict of `outrider check` on the way it decodes now, for the next start.
  void KeepVerdict(bool exact);

 private:
  struct Copy {
    Engine& engine() const { return padded ? static_cast<Engine&>(*padded) : *unpadded; }

    std::shared_ptr<LlamaModel> model;
    std::unique_ptr<LlamaEngine> unpadded;
    std::unique_ptr<PaddedEngine> padded;
  };

  Target() = default;

  std::vector<Copy> copies_;
  std::unique_ptr<ReplicatedEngine> together_;  // if there are several
  ContextOptions context_;
  ModelOptions options_;
  std::string key_;
};

}  // namespace outrider
