#include "drafters/speculator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "drafters/draft_selection.h"
#include "drafters/drafter_asking.h"
#include "drafters/drafter_record.h"
#include "drafters/recent_mean.h"
#include "drafters/speculation_account.h"
#include "spec/pace_budget.h"
#include "spec/policy.h"

namespace outrider {
namespace {

std::vector<DrafterRecord> RecordsOf(std::vector<std::unique_ptr<Drafter>> drafters, int n_sequences,
                                     const Tuning& tuning) {
  std::vector<DrafterRecord> records;
  for (auto& drafter : drafters) {
    const auto id = static_cast<DrafterId>(records.size());
    records.emplace_back(id, std::move(drafter), n_sequences, tuning);
  }
  return records;
}

std::vector<std::string> NamesOf(const std::vector<DrafterRecord>& records) {
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const DrafterRecord& record : records) names.push_back(record.traits().name);
  return names;
}

}  // namespace

class Speculator::Impl : public LookaheadSource {
 public:
  Impl(std::vector<std::unique_ptr<Drafter>> drafters, CostCurve its_curve, const SpeculatorOptions& its_options,
       const Engine& target, const Clock& clock, Lookahead* its_lookahead)
      : options(its_options),
        lookahead(its_lookahead),
        curve(std::move(its_curve)),
        save_seconds(options.tuning.asking.mean_window),
        restore_seconds(options.tuning.asking.mean_window),
        policy(
            curve, rollback, [&target](auto rows, StepLayout* layout) { target.LayOut(rows, layout); },
            options.tuning.policy),
        records(RecordsOf(std::move(drafters), target.info().n_sequences, options.tuning)),
        requests(static_cast<size_t>(target.info().n_sequences)),
        pace(target.info().n_sequences, options.min_pace_beside_others, options.tuning.pace),
        names(NamesOf(records)),
        account({names.begin(), names.end()}, target.info().n_sequences),
        step(target),
        selection(target.info().n_sequences, options.tuning.asking),
        asking(options, requests, step, curve, policy, selection, account, clock) {
    if (lookahead != nullptr) lookahead->SetLookaheadSource(this);
  }
  ~Impl() override {
    if (lookahead != nullptr) lookahead->SetLookaheadSource(nullptr);
  }

  SpeculationRequest& RequestOf(SeqId seq) { return requests[static_cast<size_t>(seq)]; }
  void ListTokensAhead(SeqId seq, std::vector<Token>* tokens) override;
  int RowsBegunAhead(const DraftableSequence& sequence) const;
  void BeginAsking();
  void ChooseRows(int room);
  double ChargedSeconds(double seconds) const;
  void LearnFrom(double seconds, const StepOutlook& plain);

  const SpeculatorOptions options;
  Lookahead* const lookahead;  // null if the target has none
  CostCurve curve;
  RollbackCost rollback;
  RecentMean save_seconds, restore_seconds;
  Policy policy;
  std::vector<DrafterRecord> records;
  std::vector<SpeculationRequest> requests;  // by sequence
  PaceBudget pace;
  const std::vector<std::string> names;  // of the drafters; statistics and answers refer to them
  SpeculationAccount account;
  uint64_t lookahead_steps = 0;

  // The step being planned.
  PlannedStep step;
  DraftSelection selection;
  DrafterAsking asking;
  std::vector<int> draft_rows;  // by draftable sequence
  std::vector<int> committed;   // by sequence: tokens of this step
  int all_committed = 0;

  std::vector<double> savings;  // by draftable sequence: see PaceBudget

  std::vector<SequenceOutlook> outlooks;  // scratch
};

Speculator::Speculator(std::vector<std::unique_ptr<Drafter>> drafters, CostCurve curve,
                       const SpeculatorOptions& options, const Engine& target, const Clock& clock, Lookahead* lookahead)
    : impl_(std::make_unique<Impl>(std::move(drafters), std::move(curve), options, target, clock, lookahead)) {
  impl_->committed.resize(impl_->requests.size());
}

Speculator::~Speculator() = default;

void Speculator::Begin(SeqId seq, std::span<const Token> history, const SpeculationOptions& wishes,
                       const DraftContext& context) {
  const SpeculatorOptions& options = impl_->options;
  SpeculationRequest& request = impl_->RequestOf(seq);
  request.n_max = wishes.n_max < 0 ? options.n_max : std::min(wishes.n_max, options.n_max);
  request.n_min = wishes.n_min < 0 ? options.n_min : wishes.n_min;
  request.p_min = wishes.p_min < 0 ? options.p_min : wishes.p_min;
  request.speculates = wishes.enabled && request.n_max > 0 && !impl_->records.empty();
  request.rejecting = context.distributions;
  request.generated = 0;
  impl_->selection.Clear(seq);
  impl_->pace.Begin(seq);
  impl_->account.BeginRequest(seq);
  request.allowed.assign(impl_->records.size(), false);
  if (!request.speculates) return;
  const auto& types = wishes.types;
  for (DrafterRecord& record : impl_->records) {
    if (!types.empty() && std::find(types.begin(), types.end(), record.traits().name) == types.end()) continue;
    request.allowed[static_cast<size_t>(record.id)] = true;
    record.Begin(seq, history, context);
  }
}

bool Speculator::WantsHidden(SeqId seq) const {
  const SpeculationRequest& request = impl_->requests[static_cast<size_t>(seq)];
  return request.speculates && std::any_of(impl_->records.begin(), impl_->records.end(), [&](const DrafterRecord& r) {
           return r.traits().reads_hidden && request.allowed[static_cast<size_t>(r.id)];
         });
}

void Speculator::Commit(SeqId seq, const CommittedStep& step, int accepted) {
  SpeculationRequest& request = impl_->RequestOf(seq);
  impl_->all_committed += step.added;
  impl_->committed[static_cast<size_t>(seq)] = step.added;
  if (!request.speculates) return;
  request.generated += step.added;
  impl_->account.AddVerified(seq, impl_->selection.draft(seq), accepted);
  impl_->selection.Clear(seq);
  for (DrafterRecord& record : impl_->records) {
    if (request.allowed[static_cast<size_t>(record.id)]) record.Commit(seq, step);
  }
}

void Speculator::End(SeqId seq, std::span<const Token> history, bool complete) {
  SpeculationRequest& request = impl_->RequestOf(seq);
  if (!request.speculates) return;
  request.speculates = false;
  impl_->selection.Clear(seq);
  for (DrafterRecord& record : impl_->records) {
    if (request.allowed[static_cast<size_t>(record.id)]) record.drafter->End(seq, history, complete);
  }
}

void Speculator::ChooseDrafts(std::span<const DraftableSequence> sequences, std::span<const SequenceRows> others,
                              int room) {
  impl_->step.Begin(sequences, others);
  impl_->draft_rows.assign(sequences.size(), 0);
  impl_->all_committed = 0;
  impl_->BeginAsking();
  if (sequences.empty()) return impl_->step.SetDrafts({});
  for (const DraftableSequence& sequence : sequences) impl_->selection.Clear(sequence.seq);
  for (DrafterRecord& record : impl_->records) {
    if (!record.traits().computes) impl_->asking.AskInEveryStep(record);
  }
  for (DrafterRecord& record : impl_->records) {
    if (record.traits().computes) impl_->asking.AskIfItPays(record);
  }
  impl_->ChooseRows(room);
}

// Begins to ask drafters, within the time that the planned step may take so that no request becomes slower than it may.
void Speculator::Impl::BeginAsking() {
  savings.clear();
  if (step.sequences().empty()) return asking.BeginStep({});
  double affordable = std::numeric_limits<double>::infinity(), patience = affordable;
  for (const DraftableSequence& sequence : step.sequences()) {
    affordable = std::min(affordable, pace.Affordable(sequence.seq, step.generating()));
    patience = std::min(patience, pace.Patience(sequence.seq));
    savings.push_back(pace.Savings(sequence.seq, step.generating()));
  }
  asking.BeginStep({policy.PlainSeconds(step.Plain()) * (1 + affordable), savings, patience});
}

// Cuts the drafts down to what is worth verifying in this step.
void Speculator::Impl::ChooseRows(int room) {
  const auto sequences = step.sequences();
  outlooks = step.plain_sequences();
  for (size_t i = 0; i < sequences.size(); ++i) outlooks[i].survival = selection.survival(sequences[i].seq);
  const bool alone = sequences.size() == 1 && !step.has_others();
  if (const int begun = alone ? std::min(RowsBegunAhead(sequences[0]), room) : 0; begun > 0) {
    draft_rows[0] = begun;
  } else if (options.always) {
    for (size_t i = 0; i < sequences.size(); ++i) {
      draft_rows[i] = std::min(static_cast<int>(outlooks[i].survival.size()), room);
      room -= draft_rows[i];
    }
  } else {
    policy.ChooseRows(asking.With(outlooks), room, draft_rows);
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (draft_rows[i] < RequestOf(sequences[i].seq).n_min) draft_rows[i] = 0;
    selection.Cut(sequences[i].seq, draft_rows[i]);
  }
  step.SetDrafts(draft_rows);
}

// How many rows the draft must have to be the same as the rows that the target has already begun to compute; 0 if the
// target has not begun with this draft.
int Speculator::Impl::RowsBegunAhead(const DraftableSequence& sequence) const {
  if (lookahead == nullptr) return 0;
  std::span<const Token> begun = lookahead->BegunAhead(sequence.seq, sequence.history);
  if (begun.empty()) return 0;
  begun = begun.subspan(1);
  const std::vector<DraftToken>& draft = selection.draft(sequence.seq).tokens;
  const auto same = [](Token token, const DraftToken& drafted) { return token == drafted.token; };
  const bool agrees = begun.size() <= draft.size() && std::equal(begun.begin(), begun.end(), draft.begin(), same);
  return agrees ? static_cast<int>(begun.size()) : 0;
}

void Speculator::Impl::ListTokensAhead(SeqId seq, std::vector<Token>* tokens) {
  tokens->clear();
  for (const DraftableSequence& sequence : step.sequences()) {
    if (sequence.seq != seq) continue;
    for (DrafterRecord& record : records) {
      if (record.traits().drafts_ahead) asking.AskAhead(record, sequence, tokens);
    }
  }
}

void Speculator::Drop(SeqId seq) {
  impl_->selection.Clear(seq);
}

const Draft& Speculator::draft(SeqId seq) const {
  return impl_->selection.draft(seq);
}

void Speculator::ObserveStep(double seconds) {
  Impl& impl = *impl_;
  impl.asking.EndStep(seconds + impl.asking.draft_seconds());
  // The measured costs of rollbacks fade, so that drafts which once seemed too expensive are tried again.
  impl.rollback.save_seconds *= 1 - impl.options.tuning.asking.rollback_forgetting;
  impl.rollback.restore_seconds *= 1 - impl.options.tuning.asking.rollback_forgetting;
  const StepOutlook plain = impl.step.Plain();
  impl.step.Done();
  if (impl.lookahead != nullptr && impl.lookahead->LastDecodeWasBegunAhead()) ++impl.lookahead_steps;
  if (!impl.step.sequences().empty() && !impl.step.has_others()) impl.LearnFrom(seconds, plain);
}

// The part of a step's `seconds` that the pace budget charges to drafts. A step may also take long because the machine
// was busy with something else, so no more is charged than the curve and a switch of shapes explain.
double Speculator::Impl::ChargedSeconds(double seconds) const {
  const StepLayout& layout = step.layout();
  const double expected = curve.Seconds(layout.parts, step.context());
  const bool drafted = std::any_of(draft_rows.begin(), draft_rows.end(), [](int rows) { return rows > 0; });
  const double noise = drafted ? options.tuning.cost.step_noise : 0;
  const bool switched = step.alike_in_a_row() == 1 || layout.parts.size() > 1;
  const double switches = switched ? static_cast<double>(layout.parts.size()) * curve.SwitchSeconds() : 0;
  return std::clamp(seconds, expected * (1 - noise), expected * (1 + noise) + switches);
}

// Learns from a step without prompts that took `seconds`. `plain` is the same step without drafts.
void Speculator::Impl::LearnFrom(double seconds, const StepOutlook& plain) {
  const double with_drafting = seconds + asking.draft_seconds();
  const double plain_seconds = policy.PlainSeconds(plain);
  const double charged = ChargedSeconds(seconds) + asking.draft_seconds();
  for (const DraftableSequence& sequence : step.sequences()) {
    const int tokens = std::exchange(committed[static_cast<size_t>(sequence.seq)], 0);
    pace.Observe(sequence.seq, step.generating(), tokens, charged / plain_seconds);
    if (RequestOf(sequence.seq).speculates) account.AddStep(sequence.seq, tokens, with_drafting, plain_seconds);
  }
  const StepLayout& layout = step.layout();
  const bool begun_ahead = lookahead != nullptr && lookahead->LastDecodeWasBegunAhead();
  const bool settled = curve.SwitchSeconds() == 0 ||
                       (step.alike_in_a_row() >= options.tuning.asking.settled_steps && layout.parts.size() == 1);
  if (settled && layout.certain && !begun_ahead) curve.Observe(layout.parts, step.context(), seconds);
  int drafted = 0;
  for (const int rows : draft_rows) drafted += rows;
  policy.Observe(plain, drafted, all_committed, with_drafting);
}

void Speculator::ObserveSave(double seconds) {
  impl_->asking.AddRollback(seconds);
  impl_->save_seconds.Observe(seconds);
  impl_->rollback.save_seconds = impl_->save_seconds.value();
}

void Speculator::ObserveRestore(double seconds) {
  impl_->asking.AddRollback(seconds);
  impl_->restore_seconds.Observe(seconds);
  impl_->rollback.restore_seconds = impl_->restore_seconds.value();
}

void Speculator::Close() {
  for (DrafterRecord& record : impl_->records) record.drafter.reset();
}

const std::vector<DrafterStats>& Speculator::stats() const {
  return impl_->account.stats();
}

const std::vector<DrafterStats>& Speculator::stats(SeqId seq) const {
  return impl_->account.stats(seq);
}

const CostCurve& Speculator::curve() const {
  return impl_->curve;
}

double Speculator::speed_up() const {
  return impl_->policy.speed_up();
}

double Speculator::speed_up(SeqId seq) const {
  return impl_->account.speed_up(seq);
}

uint64_t Speculator::lookahead_steps() const {
  return impl_->lookahead_steps;
}

std::string_view Speculator::name(DrafterId drafter) const {
  return drafter == kNoDrafter ? std::string_view() : impl_->names[static_cast<size_t>(drafter)];
}

}  // namespace outrider
