// The thread that steps.
#include <new>

#include "base/log.h"
#include "scheduler/scheduler.h"

namespace outrider {

void Scheduler::Start() {
  inbox_.BeginStepping();
  thread_ = std::thread([this] { Loop(); });
}

// A step for which there is not enough memory ends the requests that run, not the server: their sequences may have
// drawn tokens that were not committed, and could not go on with the text that they would have had.
bool Scheduler::StepOrAbandon() {
  try {
    return Step();
  } catch (const std::bad_alloc&) {
    LogError("a step failed for want of memory; {} requests end", slots_.busy());
  }
  for (Sequence& sequence : slots_.sequences()) {
    if (!sequence.busy()) continue;
    engine_.TruncateTo(sequence.id, 0);
    speculator_->Drop(sequence.id);
    committer_.Finish(sequence, FinishReason::kError, Unavailable("the server has not enough memory for this request"));
  }
  PublishStatus();
  outbox_.Deliver();
  return true;
}

void Scheduler::Loop() {
  while (StepOrAbandon() || inbox_.WaitForWork()) {
  }
  speculator_->Close();
  inbox_.EndStepping();
}

}  // namespace outrider
