// Speculator: all drafters of a server behind one face. The scheduler tells it what is committed and how long steps
// take; before each step it says which tokens are worth verifying along with the next row of each sequence.
//
//   - Drafters that only look things up are asked at every step. What they said is compared with what the target then
//     says whether or not it was verified (shadow scoring), so that a drafter that is out of favour can come back.
//   - Drafters that compute (a draft model) are asked when their expected gain exceeds their measured cost, and
//     otherwise now and then within a share of the time (`shadow_share`), to notice when that changes. They read a
//     prompt only after the target's first token, in slices, and only as far as it is likely to pay.
//   - Per sequence the most valuable draft is taken; if it is sure to its end, another drafter may continue it (join).
//
// Belongs to the stepping thread. Pure but for the drafters: time comes from the clock it is given.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "drafters/drafter.h"
#include "drafters/planned_step.h"
#include "engine/engine.h"
#include "spec/acceptance_model.h"
#include "spec/cost_curve.h"
#include "spec/policy.h"

namespace outrider {

struct SpeculatorOptions {
  int n_max = 31;               // most draft tokens per sequence and step
  int n_min = 0;                // shorter drafts are dropped
  float p_min = 0;              // a draft ends before the first token its drafter believes in less than this
  bool join = true;             // a draft that ends sure may be continued by another drafter
  bool always = false;          // verify every draft, whatever it costs: for tests and for measuring a drafter
  double shadow_share = 0.005;  // of the time, for drafters that compute and are out of favour
  RollbackCost rollback = {};   // what the target's memory can take back for nothing; costs are measured
  GapFilling gap_filling = GapFilling::kNever;  // of the target's engine
};

class Speculator {
 public:
  // `n_sequences`: of the target's engine.
  Speculator(std::vector<std::unique_ptr<Drafter>> drafters, CostCurve curve, const SpeculatorOptions& options,
             int n_sequences, const Clock& clock = Clock::Real());
  ~Speculator();

  // A request's way through the house.
  void Begin(SeqId seq, std::span<const Token> history, const SpeculationOptions& wishes, const DraftContext& context);
  void Commit(SeqId seq, std::span<const Token> history, int added);
  void End(SeqId seq, std::span<const Token> history, bool complete);

  // Chooses the drafts of a step. `other_rows`: rows of prompts in the same step; `room`: rows left in the batch.
  void Plan(std::span<const SpeculationTurn> turns, int other_rows, int room);

  // While the step that Plan prepared is computed: what may come after the draft of `seq`, by now.
  void LookAhead(SeqId seq, std::vector<Token>* ahead);

  // The step that Plan prepared failed: nothing was verified.
  void Drop(SeqId seq);

  // What Plan chose for `seq`; empty unless it was in the last Plan. Valid until the next call for `seq`.
  const Draft& draft(SeqId seq) const;

  // The step that Plan prepared took `seconds` (decoding, and drawing from its rows). `whole`: none of it was done
  // before.
  void ObserveStep(double seconds, bool whole = true);

  // What taking back costs where it is not free: saving a state before a draft, restoring one.
  void ObserveSave(double seconds);
  void ObserveRestore(double seconds);

  // The server stops: drafters keep what they learned.
  void Save();

  const std::vector<DrafterStats>& stats() const;           // by drafter, since the start
  const std::vector<DrafterStats>& stats(SeqId seq) const;  // of the request running in `seq`, or the last one there
  const CostCurve& curve() const;
  double speed_up() const;           // over plain decoding, lately
  double speed_up(SeqId seq) const;  // of the request running in `seq`, or the last one there; 1 if nothing is known

  std::string_view name(DrafterId drafter) const;  // "" for kNoDrafter; stays valid

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider
