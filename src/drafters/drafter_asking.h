// DrafterAsking: which drafters are asked in a step, and for how much.
//
//   - Drafters that answer within microseconds are asked in every step: lookups, and draft servers, which draft
//     meanwhile. If a draft is on its way, the step waits for it if the wait is shorter than the time that the draft is
//     expected to save.
//   - Drafters that compute are asked when their expected gain exceeds their measured cost. Otherwise they are asked
//     now and then, within a small share of the time, to notice when that changes (trials). They read a history in
//     slices, after the target's first token, and only as far as reading is likely to pay.
//
// What they answer is offered to the DraftSelection. Belongs to a Speculator.
#pragma once

#include <span>
#include <vector>

#include "base/clock.h"
#include "drafters/draft_selection.h"
#include "drafters/drafter_record.h"
#include "drafters/planned_step.h"
#include "drafters/speculation_account.h"
#include "drafters/speculator_options.h"
#include "spec/cost_curve.h"
#include "spec/policy.h"

namespace outrider {

class DrafterAsking {
 public:
  // All arguments must outlive this object. `requests`: by sequence.
  DrafterAsking(const SpeculatorOptions& options, const std::vector<SpeculationRequest>& requests,
                const PlannedStep& step, const CostCurve& curve, Policy& policy, DraftSelection& selection,
                SpeculationAccount& account, const Clock& clock);

  // A step is planned: first AskInEveryStep for the drafters that answer at once, then AskIfItPays for those that
  // compute. `budget` is that of a step for which nothing is drafted yet; its lists must stay until the next step.
  void BeginStep(const StepBudget& budget) {
    draft_seconds_ = invested_seconds_ = 0;
    budget_ = budget;
  }
  void AskInEveryStep(DrafterRecord& record);
  void AskIfItPays(DrafterRecord& record);

  // The step with these drafts, one for each draftable sequence, and with the time that is left for it.
  StepOutlook With(std::span<const SequenceOutlook> sequences) const;

  // Asks the drafter which tokens may follow the draft of `sequence` that is being verified. Replaces `tokens` by them
  // if they are more.
  void AskAhead(DrafterRecord& record, const DraftableSequence& sequence, std::vector<Token>* tokens);

  // Seconds of this step that were spent on drafts, including rollbacks (AddRollback) and reading.
  double draft_seconds() const { return draft_seconds_; }
  void AddRollback(double seconds) { draft_seconds_ += seconds; }

  // The step is over and took `seconds` in all; a share of this time may be spent on trials.
  void EndStep(double seconds) { stepping_seconds_ += seconds; }

 private:
  const SpeculationRequest& RequestOf(const DraftableSequence& s) const {
    return requests_[static_cast<size_t>(s.seq)];
  }
  int Room(const DraftableSequence& sequence) const;
  bool MayAsk(const DrafterRecord& record, const DraftableSequence& sequence) const;
  bool Blind(const DrafterRecord& record, SeqId seq) const;
  bool MayContinue(SeqId seq) const { return options_.join && selection_.MayBeContinued(seq); }
  bool TrialAffordable(const DrafterRecord& record, double seconds) const;

  void WaitForDue(DrafterRecord& record);
  bool WaitIsShorterThanAStep(const DrafterRecord& record, double seconds);
  bool WaitPays(const DrafterRecord& record, double seconds);
  double ExpectedGain(DrafterRecord& record, int* tokens);
  double GainWith(const DrafterRecord* record, double row_price, double seconds);
  double ReadingSeconds(const DrafterRecord& record) const;
  void ReadHistories(DrafterRecord& record, double gain);
  void ExpectDraft(const DrafterRecord& record, const DraftableSequence& sequence, double chance, double min_chance,
                   std::vector<double>* survival) const;
  Proposal& Prepare(DrafterRecord& record, const DraftableSequence& sequence, int max_tokens, double min_survival);
  double Ask(DrafterRecord& record);
  void OfferAll(DrafterRecord& record, double row_price);
  template <typename Work>
  double Timed(DrafterRecord& record, std::span<Proposal* const> proposals, Work work);

  const SpeculatorOptions& options_;
  const AskingTuning& tuning_;
  const std::vector<SpeculationRequest>& requests_;
  const PlannedStep& step_;
  const CostCurve& curve_;
  Policy& policy_;
  DraftSelection& selection_;
  SpeculationAccount& account_;
  const Clock& clock_;
  StepBudget budget_;            // of this step
  double draft_seconds_ = 0;     // of this step
  double invested_seconds_ = 0;  // those of them in which drafters read histories because later steps will gain by it
  double stepping_seconds_ = 0;  // over all steps so far

  // Scratch.
  std::vector<Proposal*> asked_;
  std::vector<SequenceOutlook> outlooks_;      // by draftable sequence, with drafts
  std::vector<std::vector<double>> expected_;  // survival of expected drafts, by draftable sequence
};

}  // namespace outrider
