#include "apps/speculation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "apps/machine_cache.h"
#include "base/log.h"
#include "drafters/calibration.h"
#include "engine/llama/compute_threads.h"
#include "engine/llama/head_file.h"
#include "remote/remote_kind.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kCalibrationBudget{800};

// "host:8090" or "[::1]:8090". A drafter's name with parameters never has this form.
bool IsAddress(const std::string& part) {
  const size_t colon = part.rfind(':');
  if (colon == std::string::npos || colon + 1 == part.size()) return false;
  const bool one_colon = part.find(':') == colon || part.front() == '[';
  return one_colon && part.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

// "suffix,ngram-mod:n_match=16,n_max=32" names two drafters: a part that has an = or is an address belongs to the
// drafter before it.
std::vector<std::string> SplitDrafters(const std::vector<std::string>& lists) {
  std::vector<std::string> drafters;
  for (const std::string& list : lists) {
    std::istringstream parts(list);
    bool first = true;
    for (std::string part; std::getline(parts, part, ','); first = false) {
      const bool parameter = part.find('=') < part.find(':') || IsAddress(part);
      if (parameter && !first) {
        drafters.back() += "," + part;
      } else {
        drafters.push_back(part);
      }
    }
  }
  return drafters;
}

ModelOptions DraftOptions(const SpeculationSettings& settings, const Target& target) {
  ModelOptions model = settings.draft_model;
  model.kernels = target.options().kernels;
  model.kernel_trials = target.options().kernel_trials;
  return model;
}

Result<std::unique_ptr<LoadedDraftModel>> LoadDraftModel(const SpeculationSettings& settings, Target& target) {
  const EngineInfo& info = target.engine().info();
  ContextOptions context = settings.draft_context;
  if (context.threads == 0) context.threads = target.context().threads;
  context.n_sequences = info.n_sequences;
  context.cpu = Inherit(context.cpu, target.context().cpu);
  context.cpu_batch = Inherit(context.cpu_batch, target.context().cpu_batch);
  // With another copy of the target, one of them may compute at any time.
  const LlamaEngine* partner = target.replicated() ? nullptr : &target.unpadded();
  return LoadedDraftModel::Load(DraftOptions(settings, target), context, info.sequence_length, partner);
}

// Loads what the drafters in `choices` need. If the target's head was chosen by "auto" and cannot be used, it is left
// out.
Status LoadNetworks(const SpeculationSettings& settings, Target& target, bool chose_head,
                    std::vector<DrafterChoice>& choices, LoadedDrafters& loaded) {
  const bool has_file = !settings.draft_model.path.empty();
  if (Chosen(choices, "model") && has_file) {
    auto model = LoadDraftModel(settings, target);
    if (!model.ok()) return model.status();
    loaded.model = std::move(*model);
  }
  if (Chosen(choices, "eagle3") && has_file) {
    auto head = LoadedHead::LoadEagle3(DraftOptions(settings, target), settings.draft_context, target);
    if (!head.ok()) return head.status();
    loaded.eagle3 = std::move(*head);
  }
  if (Chosen(choices, "mtp") && HasUsableHead(target)) {
    auto head = LoadedHead::OfTarget(settings.draft_context, target);
    if (head.ok()) {
      loaded.mtp = std::move(*head);
    } else if (chose_head) {
      LogInfo("the model's own head does not draft: {}", head.status().message());
      std::erase_if(choices, [](const DrafterChoice& choice) { return choice.name == "mtp"; });
    } else {
      return head.status();
    }
  }
  return {};
}

}  // namespace

bool Chosen(const std::vector<DrafterChoice>& choices, const std::string& name) {
  return std::any_of(choices.begin(), choices.end(), [&](const DrafterChoice& c) { return c.name == name; });
}

bool HasUsableHead(Target& target) {
  return target.model()->has_head() && !target.replicated();
}

bool WantsHeadOfTarget(const SpeculationSettings& settings) {
  const auto choices = ChooseDrafters(settings, true);
  return choices.ok() && Chosen(*choices, "mtp");
}

Result<std::vector<DrafterChoice>> ChooseDrafters(const SpeculationSettings& settings, bool target_has_head) {
  std::vector<DrafterChoice> choices;
  bool automatic = false;
  const auto add = [&choices](DrafterChoice choice) {
    if (!Chosen(choices, choice.name)) choices.push_back(std::move(choice));
  };
  for (const std::string& text : SplitDrafters(settings.drafters)) {
    if (text == "none" || text == "off") {
      if (SplitDrafters(settings.drafters).size() > 1)
        return InvalidArgument("--spec none cannot be combined with a drafter");
      return choices;
    }
    if (text == "auto") {
      automatic = true;
      add({"suffix", {}});
      add({"ngram-map-k", {}});
      continue;
    }
    auto choice = ParseDrafterChoice(text);
    if (!choice.ok()) return choice.status();
    choice->name = OurDrafterName(choice->name);
    if (Chosen(choices, choice->name)) return InvalidArgument("--spec names '" + choice->name + "' twice");
    choices.push_back(std::move(*choice));
  }
  const bool has_files = !settings.lookup_cache_static.empty() || !settings.lookup_cache_dynamic.empty();
  if (has_files) add({"ngram-cache", {}});
  if (const std::string& path = settings.draft_model.path; !path.empty())
    add({FileArchitecture(path) == "eagle3" ? "eagle3" : "model", {}});
  if (automatic && target_has_head && !Chosen(choices, "eagle3")) add({"mtp", {}});
  for (DrafterChoice& choice : choices) {
    if (const auto given = settings.parameters.find(choice.name); given != settings.parameters.end()) {
      for (const auto& [name, value] : given->second) {
        if (!value.empty()) choice.parameters.emplace(name, value);  // what --spec says itself goes before
      }
    }
    if (choice.name != "ngram-cache") continue;
    if (!settings.lookup_cache_static.empty()) choice.parameters["static"] = settings.lookup_cache_static;
    if (!settings.lookup_cache_dynamic.empty()) choice.parameters["dynamic"] = settings.lookup_cache_dynamic;
  }
  return choices;
}

Result<LoadedDrafters> LoadDrafters(SpeculationSettings settings, Target& target) {
  auto choices = ChooseDrafters(settings, HasUsableHead(target));
  if (!choices.ok()) return choices.status();
  const auto without_head = ChooseDrafters(settings);
  const bool chose_head = without_head.ok() && !Chosen(*without_head, "mtp");
  LoadedDrafters loaded;
  if (Status status = LoadNetworks(settings, target, chose_head, *choices, loaded); !status.ok()) return status;
  DrafterEnvironment environment{target.engine().info().n_sequences, target.model()->tokenizer(),
                                 loaded.model ? &loaded.model->model() : nullptr, settings.remember, &target.engine()};
  if (loaded.eagle3) environment.eagle3 = &loaded.eagle3->head();
  if (loaded.mtp) environment.mtp = &loaded.mtp->head();
  std::vector<DrafterKind> kinds = DrafterKinds();
  kinds.push_back(RemoteKind(&loaded.network));
  for (const DrafterChoice& choice : *choices) {
    auto drafter = MakeDrafter(choice, environment, kinds);
    if (!drafter.ok()) return drafter.status();
    loaded.drafters.push_back(std::move(*drafter));
  }
  return loaded;
}

Result<std::unique_ptr<Speculation>> Speculation::Create(SpeculationSettings settings, Target& target) {
  std::unique_ptr<Speculation> speculation(new Speculation());
  auto choices = ChooseDrafters(settings);
  if (!choices.ok()) return choices.status();
  if (choices->empty()) return speculation;
  if (target.engine().info().rollback == Rollback::kNone) {
    speculation->why_off_ = ": the memory of this model cannot take tokens back";
    return speculation;
  }
  const SpeculatorOptions options = settings.speculator;
  const bool calibrate = settings.calibrate;
  auto loaded = LoadDrafters(std::move(settings), target);
  if (!loaded.ok()) return loaded.status();
  speculation->draft_ = std::move(loaded->model);
  speculation->network_ = loaded->network;
  speculation->eagle3_ = std::move(loaded->eagle3);
  speculation->mtp_ = std::move(loaded->mtp);
  for (const auto& drafter : loaded->drafters) speculation->names_.push_back(drafter->traits().name);

  const std::string key = target.key();
  auto curve =
      CalibratedCostCurve(target.engine(), 0, kCalibrationBudget, MachineCachePath("cost-curves", key), key, calibrate);
  if (!curve.ok()) return curve.status();
  speculation->curve_ = fmt::format("{:.1f} ms a step; 2, 4, 8 rows cost", curve->Seconds(1, 0) * 1000);
  for (const int rows : {2, 4, 8}) {
    speculation->curve_ += fmt::format(" {:.1f}", curve->Seconds(rows, 0) / curve->Seconds(1, 0));
  }
  speculation->speculator_ = std::make_unique<Speculator>(std::move(loaded->drafters), std::move(*curve), options,
                                                          target.engine(), Clock::Real(), target.lookahead());
  return speculation;
}

std::vector<DraftServerState> Speculation::DraftServers() const {
  return network_ ? network_->Servers() : std::vector<DraftServerState>();
}

std::string Speculation::Description() const {
  if (names_.empty()) return "speculation off" + why_off_;
  const std::string file = draft_ ? draft_->Description() : eagle3_ ? eagle3_->Description() : "";
  return fmt::format("speculation: {}{}{}; {}", fmt::join(names_, ", "), file.empty() ? "" : " (" + file + ")",
                     mtp_ ? " (the model's own head)" : "", curve_);
}

}  // namespace outrider
