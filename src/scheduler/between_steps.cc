// What other threads ask of the scheduler that must not happen during a step.
#include "scheduler/scheduler.h"

namespace outrider {

Result<SavedSlot> Scheduler::SaveSlot(SeqId slot) {
  Result<SavedSlot> saved = Internal("not run");
  inbox_.RunBetweenSteps([&] { saved = slots_.Save(slot); });
  return saved;
}

Status Scheduler::RestoreSlot(SeqId slot, SavedSlot saved, const std::string& owner) {
  for (const Token token : saved.tokens) {
    if (!tokenizer_.Contains(token)) return InvalidArgument("the saved tokens are not of this vocabulary");
  }
  Status result;
  inbox_.RunBetweenSteps([&] { result = slots_.Restore(slot, std::move(saved), owner); });
  return result;
}

Result<int> Scheduler::EraseSlot(SeqId slot) {
  Result<int> erased = Internal("not run");
  inbox_.RunBetweenSteps([&] { erased = slots_.Erase(slot); });
  return erased;
}

StepCosts Scheduler::Costs() {
  StepCosts costs;
  inbox_.RunBetweenSteps([&] {
    int tokens = 0, generating = 0;
    for (const Sequence& sequence : slots_.sequences()) {
      if (!sequence.busy() || !sequence.generating()) continue;
      tokens += static_cast<int>(sequence.tokens.size());
      ++generating;
    }
    const int context = generating > 0 ? tokens / generating : 0;
    costs = ListStepCosts(speculator_->curve(), context);
    costs.last_rows = step_.batch().size();
  });
  return costs;
}

}  // namespace outrider
