// Committer: makes the tokens that a step drew part of their sequences. They are added to the text, the draft tokens
// that were not accepted leave the memory, the drafters are told which rows have become final, and an answer that is
// complete ends.
//
// Belongs to the stepping thread.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "drafters/speculator.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"
#include "scheduler/outbox.h"
#include "scheduler/sequence.h"
#include "scheduler/slot_pool.h"
#include "scheduler/stats.h"
#include "scheduler/step_batch.h"

namespace outrider {

class Committer {
 public:
  // All references must outlive this object.
  Committer(Engine& engine, const Tokenizer& tokenizer, Speculator& speculator, SlotPool& slots, Outbox& outbox,
            SchedulerStats& stats, const Clock& clock)
      : engine_(engine),
        tokenizer_(tokenizer),
        speculator_(speculator),
        slots_(slots),
        outbox_(outbox),
        stats_(stats),
        clock_(clock) {}

  // After the step was decoded and verified. Returns how many milliseconds rollbacks took.
  double Commit(const StepBatch& step);

  // Ends the request in `sequence`, whose slot becomes idle. `error`: for kError.
  void Finish(Sequence& sequence, FinishReason reason, Status error = {});

 private:
  double CommitDrawn(const StepBatch& step, const StepEntry& entry);
  std::optional<FinishReason> Append(const StepEntry& entry, int row);
  void ReportToDrafters(const StepBatch& step, const StepEntry& entry, int added, int accepted);
  double RollBack(Sequence& sequence, Pos length);
  std::vector<DrafterStats> DraftersOf(SeqId seq) const;

  Engine& engine_;
  const Tokenizer& tokenizer_;
  Speculator& speculator_;
  SlotPool& slots_;
  Outbox& outbox_;
  SchedulerStats& stats_;
  const Clock& clock_;
};

}  // namespace outrider
