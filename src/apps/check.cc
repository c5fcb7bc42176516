#include "apps/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "apps/fetch_models.h"
#include "apps/logits_check.h"
#include "apps/text_check.h"
#include "apps/version.h"
#include "base/log.h"
#include "engine/llama/backend.h"
#include "engine/llama/llama_filters.h"

namespace outrider {
namespace {

// One line of the table.
void Print(std::string_view what, bool exact, std::string_view detail) {
  fmt::print("{:<44} {:<6} {}\n", what, exact ? "exact" : "DIFFERS", detail);
  std::fflush(stdout);
}

Status CheckLogits(Target& target, const AdapterSet& adapters, bool* exact) {
  Engine& engine = target.engine();
  LogitsCheck check(engine, target.model()->tokenizer(), adapters);
  if (Status status = check.Prepare(); !status.ok()) return status;
  const auto report = [&](const std::string& what, Result<bool> same) -> Status {
    if (!same.ok()) return same.status();
    Print(what, *same, "");
    *exact = *exact && *same;
    return {};
  };
  const EngineInfo& info = engine.info();
  for (const int width : {2, 3, 4, 5, 8, 16, 32}) {
    if (width > std::min(info.max_outputs, info.max_batch)) continue;
    const Status status = report(fmt::format("logits, {} rows at once", width), check.InBatchesOf(width));
    if (!status.ok()) return status;
  }
  for (const int slice : {1, 7, 64, 200}) {
    const Status status =
        report(fmt::format("logits, prompt in slices of {}", slice), check.WithPromptInSlicesOf(slice));
    if (!status.ok()) return status;
  }
  if (info.n_sequences > 1) {
    const Status status = report("logits, beside other sequences", check.BesideOtherSequences());
    if (!status.ok()) return status;
  }
  if (info.rollback != Rollback::kNone) {
    const Status status = report("logits, after rejected drafts", check.AfterRollbacks());
    if (!status.ok()) return status;
  }
  ForgetAll(engine);
  return {};
}

// Speculation to check, and its name in the table.
struct DrafterSet {
  std::string name;
  SpeculationSettings settings;
};

// Each drafter by itself, with every draft verified whether it pays or not; then all together, as they would be used.
Result<std::vector<DrafterSet>> DrafterSets(const SpeculationSettings& asked, Target& target) {
  auto choices = ChooseDrafters(asked, HasUsableHead(target));
  if (!choices.ok()) return choices.status();
  std::vector<DrafterSet> sets;
  for (const DrafterChoice& choice : *choices) {
    SpeculationSettings settings = asked;
    settings.remember = false;  // these texts must not influence later drafts
    settings.drafters = {choice.name};
    settings.policy.always = true;
    if (choice.name != "model" && choice.name != "eagle3") settings.draft_model.path.clear();
    if (choice.name != "ngram-cache") settings.lookup_cache_static = settings.lookup_cache_dynamic = "";
    sets.push_back({choice.name, std::move(settings)});
  }
  if (choices->size() > 1) {
    sets.push_back({"all, when it pays", asked});
    sets.back().settings.remember = false;
  }
  return sets;
}

Status CheckTexts(const ServeOptions& options, Target& target, const AdapterSet& adapters, bool* exact) {
  Engine& engine = target.engine();
  const LlamaTokenizer& tokenizer = target.model()->tokenizer();
  LlamaFilterFactory filters(target.model(), engine.info().sequence_length);
  const auto sets = DrafterSets(options.speculation, target);
  if (!sets.ok()) return sets.status();
  for (const float temperature : {0.0f, 0.8f}) {
    const auto plain = ContinueTexts(engine, tokenizer, filters, nullptr, temperature, adapters);
    if (!plain.ok()) return plain.status();
    for (const DrafterSet& set : *sets) {
      auto speculation = Speculation::Create(set.settings, target);
      if (!speculation.ok()) return speculation.status();
      const auto drafted =
          ContinueTexts(engine, tokenizer, filters, (*speculation)->TakeSpeculator(), temperature, adapters);
      if (!drafted.ok()) return drafted.status();
      const std::string difference = FirstDifference(*plain, *drafted);
      std::string detail = difference;
      if (difference.empty()) {
        detail = drafted->drafted == 0
                     ? "nothing was drafted: this proves nothing"
                     : fmt::format("{} of {} draft tokens accepted", drafted->accepted, drafted->drafted);
      }
      Print(fmt::format("text with {}, temperature {:.1f}", set.name, temperature), difference.empty(), detail);
      *exact = *exact && difference.empty();
    }
  }
  return {};
}

// Checks the way in which the target decodes now; the result is kept for the next start.
Status CheckTarget(const ServeOptions& options, Target& target, const AdapterSet& adapters, bool* exact) {
  *exact = true;
  if (Status status = CheckLogits(target, adapters, exact); !status.ok()) return status;
  if (Status status = CheckTexts(options, target, adapters, exact); !status.ok()) return status;
  target.KeepVerdict(*exact);
  return {};
}

}  // namespace

Status Check(ServeOptions options, bool* exact) {
  SetLogLevel(options.log.verbose ? LogLevel::kDebug : LogLevel::kError);
  if (!options.replica.empty()) {
    return InvalidArgument(
        "outrider check is about one copy of the model; outrider serve compares them when it starts");
  }
  if (Status status = FetchModels(options); !status.ok()) return status;
  if (Status status = InitBackend(options.numa); !status.ok()) return status;
  options.model.heads = WantsHeadOfTarget(options.speculation);
  auto named = NameAdapters(options.adapters);
  if (!named.ok()) return named.status();
  // The verdict is about all that requests may ask for, so no adapter is left out.
  std::replace(named->scales.begin(), named->scales.end(), 0.0f, 1.0f);
  options.model.adapters = named->paths;
  const AdapterSet adapters = AdaptersOf(named->scales);
  auto loaded = Target::Load(options.model, options.context, /*learn=*/false);
  if (!loaded.ok()) return loaded.status();
  Target& target = **loaded;
  fmt::print("{}\n{}, {}{}\n\n", VersionLine(), options.model.path, target.model()->Description(),
             target.padded() ? ", every step padded to one shape" : "");

  if (Status status = CheckTarget(options, target, adapters, exact); !status.ok()) return status;
  const bool plain_differs = !*exact && !target.padded();
  if (plain_differs && options.context.exactness == Exactness::kAuto && target.CanPad()) {
    fmt::print("\nOnce more, with every step padded to one shape:\n\n");
    target.Pad();
    if (Status status = CheckTarget(options, target, adapters, exact); !status.ok()) return status;
  }

  const std::string caveat = target.unpadded().info().exactness;
  const std::string why = caveat.empty() ? "though the settings should be enough; please report this table" : caveat;
  if (*exact && plain_differs) {
    fmt::print("\nEvery promise holds with padded steps: --exact pad, or auto with these flags from now on.\n");
    fmt::print("Not without them: {}.\n", why);
  } else if (*exact) {
    fmt::print("\nEvery promise holds: the same request gives the same text.\n");
  } else {
    fmt::print("\nNot exact: {}.\n", why);
  }
  return {};
}

}  // namespace outrider
