// Speculation from flags: which drafters, the draft model, the calibrated cost curve. Shared by all subcommands that
// decode.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/loaded_draft_model.h"
#include "apps/loaded_head.h"
#include "apps/target.h"
#include "base/status.h"
#include "drafters/registry.h"
#include "drafters/speculator.h"
#include "engine/model_options.h"
#include "remote/draft_network.h"

namespace outrider {

// The values of --spec and of the flags that belong to it.
struct SpeculationSettings {
  std::vector<std::string> drafters = {"auto"};  // "auto", "none", or NAME[:key=value,…] each
  SpeculatorOptions speculator;
  bool remember = true;  // drafters may learn from earlier requests (not with --spec-forget)
  std::map<std::string, std::map<std::string, std::string>> parameters;  // by drafter and name; "" = not given
  std::string lookup_cache_static;                                       // files of the ngram-cache drafter
  std::string lookup_cache_dynamic;
  ModelOptions draft_model;  // path "" = no draft model
  ContextOptions draft_context;
  bool calibrate = false;  // measure the cost curve even if a measurement is kept on disk
};

// Drafters, and the draft model and heads that they may use, which must outlive them; null if none of them needs one.
struct LoadedDrafters {
  std::unique_ptr<LoadedDraftModel> model;
  std::unique_ptr<LoadedHead> eagle3, mtp;
  std::shared_ptr<DraftNetwork> network;  // null if none of them asks draft servers
  std::vector<std::unique_ptr<Drafter>> drafters;
};

// The drafters that `settings` ask for.
Result<LoadedDrafters> LoadDrafters(SpeculationSettings settings, Target& target);

// The draft model and the heads, if there are any, and the drafters. Must outlive the Speculator that it gives away.
class Speculation {
 public:
  // The target must be idle: its steps are measured.
  static Result<std::unique_ptr<Speculation>> Create(SpeculationSettings settings, Target& target);

  // Call it once; null if there are no drafters.
  std::unique_ptr<Speculator> TakeSpeculator() { return std::move(speculator_); }

  // The draft servers that are asked, and their states. May be called from any thread.
  std::vector<DraftServerState> DraftServers() const;

  const std::vector<std::string>& names() const { return names_; }  // of the drafters
  std::string Description() const;                                  // one line for the log

 private:
  Speculation() = default;

  std::unique_ptr<LoadedDraftModel> draft_;
  std::shared_ptr<DraftNetwork> network_;
  std::unique_ptr<LoadedHead> eagle3_, mtp_;
  std::unique_ptr<Speculator> speculator_;
  std::vector<std::string> names_;
  std::string why_off_;
  std::string curve_;  // "T(4) = 1.3 T(1), …"
};

// The drafters that `settings` ask for, "auto" resolved. `target_has_head`: the target was loaded with its head, which
// can be used. kInvalidArgument says which flag is wrong.
Result<std::vector<DrafterChoice>> ChooseDrafters(const SpeculationSettings& settings, bool target_has_head = false);

// Whether the target is to be loaded with its head (ModelOptions::heads).
bool WantsHeadOfTarget(const SpeculationSettings& settings);
bool HasUsableHead(Target& target);

bool Chosen(const std::vector<DrafterChoice>& choices, const std::string& name);

}  // namespace outrider
