#include "drafters/drafter_asking.h"

#include <algorithm>
#include <limits>

namespace outrider {
namespace {

constexpr int kMinSlice = 8,
              kMaxSlice = 512;  // tokens: fewer at once cost more each, more would hold up a step for long

}  // namespace

DrafterAsking::DrafterAsking(const SpeculatorOptions& options, const std::vector<SpeculationRequest>& requests,
                             const PlannedStep& step, const CostCurve& curve, Policy& policy, DraftSelection& selection,
                             SpeculationAccount& account, const Clock& clock)
    : options_(options),
      tuning_(options.tuning.asking),
      requests_(requests),
      step_(step),
      curve_(curve),
      policy_(policy),
      selection_(selection),
      account_(account),
      clock_(clock) {}

StepOutlook DrafterAsking::With(std::span<const SequenceOutlook> sequences) const {
  StepOutlook outlook = step_.With(sequences);
  outlook.budget = budget_;
  outlook.budget.max_seconds -= draft_seconds_ - invested_seconds_;
  return outlook;
}

int DrafterAsking::Room(const DraftableSequence& sequence) const {
  return std::min(RequestOf(sequence).n_max, sequence.room);
}

bool DrafterAsking::MayAsk(const DrafterRecord& record, const DraftableSequence& sequence) const {
  const SpeculationRequest& request = RequestOf(sequence);
  return request.speculates && request.allowed[static_cast<size_t>(record.id)] && Room(sequence) > 0;
}

// Random draws that may be rejected are judged without looking at the tokens that were drawn.
bool DrafterAsking::Blind(const DrafterRecord& record, SeqId seq) const {
  return requests_[static_cast<size_t>(seq)].rejecting && record.traits().draws;
}

// Whether a trial may take `seconds`: trials have a small share of all time, and no request may become slower by them
// than it may become by drafts.
bool DrafterAsking::TrialAffordable(const DrafterRecord& record, double seconds) const {
  const double plain_seconds = policy_.PlainSeconds(step_.Plain());
  return record.trial_seconds + seconds <=
             tuning_.first_trials * plain_seconds + tuning_.trial_share * stepping_seconds_ &&
         std::none_of(budget_.savings.begin(), budget_.savings.end(), [](double savings) { return savings < 0; });
}

void DrafterAsking::AskInEveryStep(DrafterRecord& record) {
  asked_.clear();
  for (const DraftableSequence& sequence : step_.sequences()) {
    if (MayAsk(record, sequence)) Prepare(record, sequence, Room(sequence), 0);
  }
  if (asked_.empty()) return;
  Ask(record);
  OfferAll(record, policy_.MinSurvival(step_.Plain(), 0));
  WaitForDue(record);
}

// Waits for drafts that are on their way, if waiting is expected to pay.
void DrafterAsking::WaitForDue(DrafterRecord& record) {
  double longest = 0;
  for (const Proposal* proposal : asked_) longest = std::max(longest, proposal->due);
  if (longest == 0) return;
  if (!options_.always && !(WaitIsShorterThanAStep(record, longest) && WaitPays(record, longest))) return;
  asked_.clear();
  for (const DraftableSequence& sequence : step_.sequences()) {
    if (!MayAsk(record, sequence) || record.proposals[static_cast<size_t>(sequence.seq)].due == 0) continue;
    Prepare(record, sequence, Room(sequence), 0).patience = longest;
  }
  Ask(record);
  OfferAll(record, policy_.MinSurvival(step_.Plain(), 0));
}

// Whether waiting `seconds` for the drafts is better than taking a plain step now and using the rest of the drafts in
// the next step. A plain step generates one token for each sequence. If that is the draft's first token, the rest of
// the draft can still be used; if not, there is no draft in the next step either.
bool DrafterAsking::WaitIsShorterThanAStep(const DrafterRecord& record, double seconds) {
  double first_right = 0;
  for (const DraftableSequence& sequence : step_.sequences())
    first_right += record.acceptance.TypicalAcceptance(sequence.seq, 0) / step_.generating();
  const double plain_seconds = policy_.PlainSeconds(step_.Plain());
  return seconds < plain_seconds * (1 - (1 - first_right) / policy_.speed_up()) * tuning_.max_wait;
}

// Whether the step is expected to gain more with the drafts that arrive `seconds` later than with those that are ready.
bool DrafterAsking::WaitPays(const DrafterRecord& record, double seconds) {
  const double row_price = policy_.MinSurvival(step_.Plain(), 0);
  const auto& sequences = step_.sequences();
  outlooks_ = step_.plain_sequences();
  expected_.resize(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) outlooks_[i].survival = selection_.survival(sequences[i].seq);
  const double without = policy_.Gain(With(outlooks_), 0);
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!MayAsk(record, sequences[i]) || record.proposals[static_cast<size_t>(sequences[i].seq)].due == 0) continue;
    ExpectDraft(record, sequences[i], 1, row_price / 2, &expected_[i]);
    if (WorthOf(expected_[i], row_price) > WorthOf(outlooks_[i].survival, row_price))
      outlooks_[i].survival = expected_[i];
  }
  return policy_.Gain(With(outlooks_), seconds) > without;
}

// Fills `survival` for the draft that the drafter is expected to make. `chance` is the chance that the tokens which it
// continues are accepted. The list ends when the chance falls below `min_chance`.
void DrafterAsking::ExpectDraft(const DrafterRecord& record, const DraftableSequence& sequence, double chance,
                                double min_chance, std::vector<double>* survival) const {
  survival->clear();
  for (int place = 0; place < Room(sequence) && chance >= min_chance; ++place) {
    chance *= record.acceptance.TypicalAcceptance(sequence.seq, place);
    survival->push_back(chance);
  }
}

// A drafter that computes is asked for as many tokens as are worth their cost, judged by its record. If it is not worth
// asking at all, it is asked for a few tokens now and then, as a trial.
void DrafterAsking::AskIfItPays(DrafterRecord& record) {
  int tokens = 0;
  const double gain = ExpectedGain(record, &tokens);
  const bool pays = gain > 0 || options_.always;
  if (!pays) {
    tokens = tuning_.trial_tokens;
    if (!TrialAffordable(record, tokens * record.token_seconds.value() + ReadingSeconds(record))) return;
  }
  if (!step_.has_others()) ReadHistories(record, gain);  // while the target reads prompts, drafters wait

  // A draft ends before the first token that is not worth the time of making it. How many of its tokens are worth their
  // rows is not decided here but when all drafts are there (Policy::ChooseRows), because a longer draft may pay where a
  // shorter one does not: on some machines four rows cost less than two. Where a change of the number of rows costs
  // time (SwitchSeconds), the draft is always made to the planned length.
  const double row_price = policy_.MinSurvival(step_.Plain(), 0);
  const double making_price =
      policy_.MinSurvival(step_.Plain(), record.token_seconds.value() / step_.generating()) - row_price;
  const bool to_the_end = !pays || options_.always || curve_.SwitchSeconds() > 0;
  asked_.clear();
  int given = 0, made = 0;
  for (const DraftableSequence& sequence : step_.sequences()) {
    if (!MayAsk(record, sequence) || record.Lag(sequence.seq, sequence.history) > 0) continue;
    const int begun = MayContinue(sequence.seq) ? selection_.draft(sequence.seq).size() : 0;
    Proposal& proposal =
        Prepare(record, sequence, std::min(begun + tokens, Room(sequence)), to_the_end ? 0 : making_price);
    if (begun > 0) proposal.draft = selection_.draft(sequence.seq);
    given = std::max(given, begun);
  }
  if (asked_.empty()) return;
  const double seconds = Ask(record);
  for (const Proposal* proposal : asked_) made = std::max(made, proposal->draft.size());
  record.token_seconds.Observe(seconds / std::max(made - given, 1));
  if (!pays) record.trial_seconds += seconds;
  OfferAll(record, row_price);
}

// Sets how many tokens the drafter should make. Returns what the step gains by them over the drafts that are there
// already, in tokens; 0 if nothing.
double DrafterAsking::ExpectedGain(DrafterRecord& record, int* tokens) {
  const double token_seconds = record.token_seconds.value();
  const double row_price = policy_.MinSurvival(step_.Plain(), token_seconds / step_.generating());
  const auto& sequences = step_.sequences();
  expected_.resize(sequences.size());
  outlooks_ = step_.plain_sequences();
  for (size_t i = 0; i < sequences.size(); ++i) {
    expected_[i].clear();
    if (!MayAsk(record, sequences[i])) continue;
    const double chance = MayContinue(sequences[i].seq) ? selection_.survival(sequences[i].seq).back() : 1;
    ExpectDraft(record, sequences[i], chance, row_price / 2, &expected_[i]);
    outlooks_[i].survival = expected_[i];
  }
  *tokens = options_.always ? options_.n_max : policy_.ChooseDraftLength(With(outlooks_), token_seconds);
  if (*tokens == 0) return 0;
  for (std::vector<double>& expected : expected_) {
    if (expected.size() > static_cast<size_t>(*tokens)) expected.resize(static_cast<size_t>(*tokens));
  }
  const double without = GainWith(nullptr, row_price, 0);
  return std::max(0.0, GainWith(&record, row_price, *tokens * token_seconds) - without);
}

// What the step gains with the drafts that are there. If `record` is given, the drafts that its drafter is expected to
// make in `seconds` replace those that are worth less.
double DrafterAsking::GainWith(const DrafterRecord* record, double row_price, double seconds) {
  outlooks_ = step_.plain_sequences();
  for (size_t i = 0; i < outlooks_.size(); ++i) {
    const SeqId seq = outlooks_[i].seq;
    const std::span<const double> there = selection_.survival(seq);
    std::vector<double>& expected = expected_[i];
    outlooks_[i].survival = there;
    const bool better = record != nullptr && !expected.empty() &&
                        (there.empty() || WorthOf(expected, row_price) > WorthOf(there, row_price));
    if (!better) continue;
    if (MayContinue(seq)) expected.insert(expected.begin(), there.begin(), there.end());
    outlooks_[i].survival = expected;
  }
  return policy_.Gain(With(outlooks_), seconds);
}

// The time that the drafter would need to read everything that it has not read yet of this step's sequences.
double DrafterAsking::ReadingSeconds(const DrafterRecord& record) const {
  int tokens = 0;
  for (const DraftableSequence& sequence : step_.sequences()) {
    if (MayAsk(record, sequence)) tokens += record.Lag(sequence.seq, sequence.history);
  }
  return tokens * record.read_seconds.value();
}

// Lets the drafter read a slice of each history that it has not read completely: if the answer is likely to go on long
// enough for that to pay, and can afford all of it even if it does not pay; or as a trial.
void DrafterAsking::ReadHistories(DrafterRecord& record, double gain) {
  const double plain_seconds = policy_.PlainSeconds(step_.Plain());
  for (size_t i = 0; i < step_.sequences().size(); ++i) {
    const DraftableSequence& sequence = step_.sequences()[i];
    if (!MayAsk(record, sequence)) continue;
    const int lag = record.Lag(sequence.seq, sequence.history);
    if (lag == 0) continue;
    const double per_token = record.read_seconds.value();
    const int generated = RequestOf(sequence).generated;
    const int remaining = std::min(sequence.room, std::max(tuning_.typical_answer - generated, generated));
    const double earns = gain / step_.generating() * remaining * plain_seconds;
    const double savings = budget_.savings.empty() ? std::numeric_limits<double>::infinity() : budget_.savings[i];
    const double affordable = std::max(0.0, savings) + options_.tuning.pace.long_share * remaining;
    const double reading = lag * per_token;
    const bool pays = options_.always || (record.read_seconds.known() && tuning_.reading_return * reading <= earns &&
                                          reading <= affordable * plain_seconds);
    int slice = tuning_.first_slice;
    if (per_token > 0) {
      slice = std::clamp(static_cast<int>(tuning_.slice_share * plain_seconds / per_token), kMinSlice, kMaxSlice);
    }
    slice = std::min(slice, lag);
    if (!pays && !TrialAffordable(record, slice * per_token)) continue;
    Proposal& proposal = record.proposals[static_cast<size_t>(sequence.seq)];
    proposal.seq = sequence.seq;
    Proposal* const whose[] = {&proposal};
    const double seconds =
        Timed(record, whose, [&] { record.drafter->reader()->Read(sequence.seq, sequence.history, slice); });
    record.read_seconds.Observe(seconds / slice);
    (pays ? invested_seconds_ : record.trial_seconds) += seconds;
  }
}

void DrafterAsking::AskAhead(DrafterRecord& record, const DraftableSequence& sequence, std::vector<Token>* tokens) {
  if (!MayAsk(record, sequence)) return;
  const std::vector<DraftToken>& draft = selection_.draft(sequence.seq).tokens;
  asked_.clear();
  const int max_tokens = std::min(static_cast<int>(draft.size()) + RequestOf(sequence).n_max, sequence.room);
  Proposal& proposal = Prepare(record, sequence, max_tokens, 0);
  proposal.draft.tokens = draft;
  record.drafter->Propose(asked_);
  if (proposal.draft.tokens.size() <= draft.size() + tokens->size()) return;
  tokens->clear();
  for (size_t i = draft.size(); i < proposal.draft.tokens.size(); ++i) {
    tokens->push_back(proposal.draft.tokens[i].token);
  }
}

Proposal& DrafterAsking::Prepare(DrafterRecord& record, const DraftableSequence& sequence, int max_tokens,
                                 double min_survival) {
  Proposal& proposal = record.proposals[static_cast<size_t>(sequence.seq)];
  proposal.seq = sequence.seq;
  proposal.history = sequence.history;
  proposal.max_tokens = max_tokens;
  const bool blind = Blind(record, sequence.seq);
  proposal.p_min = blind ? 0 : RequestOf(sequence).p_min;
  proposal.min_survival = blind ? 0 : min_survival;
  proposal.patience = proposal.due = 0;
  proposal.draft.Clear();
  asked_.push_back(&proposal);
  return proposal;
}

template <typename Work>
double DrafterAsking::Timed(DrafterRecord& record, std::span<Proposal* const> proposals, Work work) {
  const TimePoint start = clock_.Now();
  work();
  const double seconds = Milliseconds(clock_.Now() - start) / 1000;
  draft_seconds_ += seconds;
  account_.AddDrafting(record.id, seconds);
  for (const Proposal* proposal : proposals) account_.AddDraftingFor(proposal->seq, record.id, seconds);
  return seconds;
}

// Fills the drafts of `asked_`; returns the time it took.
double DrafterAsking::Ask(DrafterRecord& record) {
  const double seconds = Timed(record, asked_, [&] { record.drafter->Propose(asked_); });
  for (Proposal* proposal : asked_) {
    Draft& draft = proposal->draft;
    if (draft.size() <= proposal->max_tokens) continue;
    draft.tokens.resize(static_cast<size_t>(proposal->max_tokens));
    if (!draft.distributions.empty()) draft.distributions.resize(static_cast<size_t>(proposal->max_tokens));
  }
  return seconds;
}

void DrafterAsking::OfferAll(DrafterRecord& record, double row_price) {
  for (Proposal* proposal : asked_) selection_.Offer(record, *proposal, Blind(record, proposal->seq), row_price);
}

}  // namespace outrider
