#include "apps/costs.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "apps/loaded_draft_model.h"
#include "apps/target.h"
#include "base/clock.h"
#include "bench/prompt_set.h"
#include "drafters/calibration.h"
#include "drafters/model_drafter.h"
#include "engine/llama/head_file.h"
#include "engine/model_options.h"

namespace outrider {
namespace {

constexpr std::chrono::seconds kBudget{2};
constexpr Pos kSequenceLength = 2048;
constexpr int kDraft = 8, kRounds = 20, kHistory = 512;

double SecondsSince(TimePoint start) {
  return Milliseconds(Clock::Real().Now() - start) / 1000;
}

// Reads and drafts as it is done beside a target; of several rounds the fastest counts.
DraftModelCosts MeasureDraft(const DraftModel& model) {
  ModelDrafter drafter(model, 1, 0, model.tokenizer.vocabulary_size());
  const std::vector<Token> history =
      model.tokenizer.Tokenize(Prose(kHistory), /*add_bos=*/true, SpecialTokens::kAsText);
  DraftContext context;
  context.sampling.temperature = 0;
  drafter.Begin(0, history, context);
  DraftModelCosts costs = {1, 1};
  for (int round = 0; round < 3; ++round) {
    drafter.Forget(0);
    const TimePoint start = Clock::Real().Now();
    drafter.Read(0, history, static_cast<int>(history.size()));
    costs.read_seconds = std::min(costs.read_seconds, SecondsSince(start) / static_cast<double>(history.size()));
  }
  for (int round = 0; round < kRounds; ++round) {
    Proposal proposal;
    proposal.seq = 0;
    proposal.history = history;
    proposal.max_tokens = kDraft;
    Proposal* proposals[] = {&proposal};
    const TimePoint start = Clock::Real().Now();
    drafter.Propose(proposals);
    if (proposal.draft.empty()) continue;
    costs.token_seconds = std::min(costs.token_seconds, SecondsSince(start) / proposal.draft.size());
  }
  return costs;
}

}  // namespace

Result<MeasuredCosts> MeasureCosts(const std::string& model, const std::string& draft, int threads, int gpu_layers) {
  ModelOptions target_model;
  target_model.path = model;
  target_model.gpu_layers = gpu_layers;
  ContextOptions context;
  context.n_sequences = 1;
  context.threads = threads;
  auto target = Target::Load(target_model, context);
  if (!target.ok()) return target.status();
  MeasuredCosts costs;
  auto calibration = MeasureCostCurve((*target)->engine(), 0, kBudget);
  if (!calibration.ok()) return calibration.status();
  costs.curve = std::move(calibration->curve);
  // A head computes beside its target only; its tokens are measured while it serves.
  if (draft.empty() || FileArchitecture(draft) == "eagle3") return costs;
  ModelOptions draft_model = target_model;
  draft_model.path = draft;
  draft_model.kernel_trials = (*target)->options().kernel_trials;
  auto loaded = LoadedDraftModel::Load(draft_model, context, kSequenceLength, &(*target)->unpadded());
  if (!loaded.ok()) return loaded.status();
  costs.draft = MeasureDraft((*loaded)->model());
  return costs;
}

}  // namespace outrider
