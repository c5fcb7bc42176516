// Speculator: all drafters of a server behind one interface. The scheduler reports to it which tokens are committed and
// how long steps take; before each step it answers which draft tokens are worth verifying along with the next row of
// each sequence.
//
// It combines these parts:
//   DrafterAsking       which drafters are asked, and for how much
//   DraftSelection      the best draft of each sequence
//   Policy              how many tokens of these drafts a step verifies (spec/policy.h), unless --spec-always, rows
//                       that a replica has begun, or n_min decide
//   SpeculationAccount  counts of drafted and accepted tokens, and times
//
// The order of calls. A request: Begin, then steps, then End. A step, with the sequences that decode in it:
//
//   ChooseDrafts, once         draft(seq) then returns them
//     ObserveSave              for each state that was saved before the step was decoded
//   then for each sequence     Commit, and after it ObserveRestore if tokens had to be taken back by restoring a state
//   ObserveStep, once          when all are committed
//
// End may follow a Commit before ObserveStep. If the step failed, Drop is called for each of its sequences instead, and
// ObserveStep is not. End may also come between steps (a cancelled request).
//
// Belongs to the stepping thread. Time comes from the clock it is given. Apart from that, and from what the drafters
// do, answers depend only on the calls.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "drafters/drafter.h"
#include "drafters/planned_step.h"
#include "drafters/speculator_options.h"
#include "engine/engine.h"
#include "engine/lookahead.h"
#include "spec/cost_curve.h"

namespace outrider {

class Speculator {
 public:
  // `target` must outlive this object. `lookahead`: of the target, if it can begin with rows before they are asked for.
  Speculator(std::vector<std::unique_ptr<Drafter>> drafters, CostCurve curve, const SpeculatorOptions& options,
             const Engine& target, const Clock& clock = Clock::Real(), Lookahead* lookahead = nullptr);
  ~Speculator();

  // A request begins in `seq`, is drafted for, and ends.
  void Begin(SeqId seq, std::span<const Token> history, const SpeculationOptions& wishes, const DraftContext& context);
  void End(SeqId seq, std::span<const Token> history, bool complete);

  // A step is over for `seq`, and `accepted` tokens of its draft were accepted. Called for sequences with a draft or
  // new tokens and, if WantsHidden(seq), also for those whose prompt is being read.
  void Commit(SeqId seq, const CommittedStep& step, int accepted);

  // Whether the rows of `seq` must come with hidden states.
  bool WantsHidden(SeqId seq) const;

  // Chooses the drafts of a step. Both lists in ascending order of sequences; `others`: those that may not have a draft
  // (prompts); `room`: rows left in the batch.
  void ChooseDrafts(std::span<const DraftableSequence> sequences, std::span<const SequenceRows> others, int room);

  // What ChooseDrafts chose for `seq`; empty unless it was among its sequences. Valid until the next call for `seq`.
  const Draft& draft(SeqId seq) const;

  // The step that was prepared failed: nothing was verified.
  void Drop(SeqId seq);

  // The step that was prepared took `seconds` (decoding, and drawing from its rows).
  void ObserveStep(double seconds);

  // What a rollback costs where it is not free: saving a state before a draft, and restoring it.
  void ObserveSave(double seconds);
  void ObserveRestore(double seconds);

  // The server stops: the drafters are destroyed, and write what they keep in files. Only what follows may be called
  // then.
  void Close();

  const std::vector<DrafterStats>& stats() const;           // by drafter, since the start
  const std::vector<DrafterStats>& stats(SeqId seq) const;  // of the request running in `seq`, or the last one there
  const CostCurve& curve() const;
  double speed_up() const;           // over plain decoding, lately
  double speed_up(SeqId seq) const;  // of the request running in `seq`, or the last one there; 1 if nothing is known
  uint64_t lookahead_steps() const;  // steps whose rows had been begun before they were asked for

  std::string_view name(DrafterId drafter) const;  // "" for kNoDrafter; stays valid

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
