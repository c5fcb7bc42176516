#include "drafters/speculator.h"

#include <algorithm>

#include "drafters/seat.h"

namespace outrider {
namespace {

// Tokens a draft is expected to bring, less what its rows cost, cut where that is most.
double WorthOf(std::span<const double> survival, double row_price) {
  double worth = 0, most = 0;
  for (const double chance : survival) most = std::max(most, worth += chance - row_price);
  return most;
}

// A sequence of the target.
struct Slot {
  bool speculates = false;
  bool rejecting = false;  // random draws may be rejected: whether one is verified must not depend on what was drawn
  int n_max = 0, n_min = 0;
  float p_min = 0;
  std::vector<bool> allowed;  // by drafter
  int generated = 0;
  double seconds = 0;            // of the steps it took part in
  double plain_seconds = 0;      // what plain steps would have taken for the same tokens
  int committed = 0;             // in this step
  Draft draft;                   // the best one of this step
  std::vector<double> survival;  // of `draft`
  std::vector<DrafterStats> stats;

  std::span<const double> DraftSurvival() const { return draft.empty() ? std::span<const double>() : survival; }
};

constexpr int kTrialRounds = 3;        // tokens a computing drafter out of favour is asked for
constexpr double kTrialCredit = 0.02;  // seconds a computing drafter may spend before the time has earned them
constexpr double kSureEnough = 0.7;    // a draft that survives to its end with this chance may be continued
constexpr int kSliceTokens = 64;       // tokens of a prompt a computing drafter reads per step, until timed
constexpr double kSliceShare = 0.5;    // of a plain step's time, for reading
constexpr int kLeastSlice = 8;         // fewer tokens at once cost more each, which would make slices ever smaller
constexpr double kRemembered = 0.998;  // from step to step, of what saving and restoring a state cost
constexpr int kStepsToSettle = 3;      // of one shape, where a switch of shapes costs something
constexpr double kHurry = 0.4;         // of the longest wait that would pay: what comes is only how a draft begins
constexpr int kLeastRemaining = 16;    // tokens an answer is expected to go on for, at least

}  // namespace

struct Speculator::State {
  State(CostCurve its_curve, const SpeculatorOptions& its_options, const Clock& its_clock)
      : options(its_options),
        clock(its_clock),
        curve(std::move(its_curve)),
        rollback(options.rollback),
        policy(curve, rollback),
        step(options.gap_filling) {}

  const SpeculatorOptions options;
  const Clock& clock;
  CostCurve curve;
  RollbackCost rollback;
  RecentMean save_seconds, restore_seconds;
  Policy policy;
  std::vector<Seat> seats;
  std::vector<Slot> slots;
  std::vector<DrafterStats> stats;
  double stepping_seconds = 0;  // over all steps so far

  // The step being planned.
  PlannedStep step;
  int draft_rows = 0, committed = 0;
  double draft_seconds = 0;  // and for saving and restoring states

  // Scratch.
  std::vector<Proposal*> asked;
  std::vector<SequenceOutlook> offers;        // by turn, with drafts
  std::vector<std::vector<double>> outlooks;  // by turn
  std::vector<double> survival;
  std::vector<int> rows;  // of drafts, by turn

  Slot& SlotOf(SeqId seq) { return slots[static_cast<size_t>(seq)]; }
  int Room(const SpeculationTurn& turn) { return std::min(SlotOf(turn.seq).n_max, turn.room); }
  bool MayAsk(const Seat& seat, const SpeculationTurn& turn) {
    const Slot& slot = SlotOf(turn.seq);
    return slot.speculates && slot.allowed[static_cast<size_t>(seat.id)] && Room(turn) > 0;
  }
  bool TrialAffordable(const Seat& seat, double seconds) const {
    return seat.trial_seconds + seconds <= kTrialCredit + options.shadow_share * stepping_seconds;
  }

  void AskLookup(Seat& seat);
  void WaitFor(Seat& seat);
  bool BetterNowThanNext(const Seat& seat, double seconds);
  void AskComputing(Seat& seat);
  double Outlook(Seat& seat, int* rounds);
  double ReadingSeconds(const Seat& seat);
  void ReadUp(Seat& seat, double gain);
  void Foresee(const Seat& seat, const SpeculationTurn& turn, double chance, double least,
               std::vector<double>* outlook);
  void Prepare(Seat& seat, const SpeculationTurn& turn, int max_tokens, double least_survival);
  double Ask(Seat& seat);
  void TakeBetter(Seat& seat, double row_price);
  int DraftUnderway(const SpeculationTurn& turn);
  void Trim(int room);
  // A random draw that may be rejected is judged without a look at it.
  bool Blind(const Seat& seat, const Slot& slot) const { return slot.rejecting && seat.drafter->draws(); }
  bool Continues(const Slot& slot) const {
    return options.join && !slot.draft.empty() && slot.survival.back() >= kSureEnough;
  }
  template <typename Work>
  double Timed(Seat& seat, std::span<Proposal* const> whose, Work work);
};

Speculator::Speculator(std::vector<std::unique_ptr<Drafter>> drafters, CostCurve curve,
                       const SpeculatorOptions& options, int n_sequences, const Clock& clock)
    : state_(std::make_unique<State>(std::move(curve), options, clock)) {
  for (auto& drafter : drafters) {
    state_->stats.push_back({drafter->name()});
    const auto id = static_cast<DrafterId>(state_->seats.size());
    state_->seats.emplace_back(id, std::move(drafter), n_sequences);
  }
  state_->slots.resize(static_cast<size_t>(n_sequences));
}

Speculator::~Speculator() = default;

void Speculator::Begin(SeqId seq, std::span<const Token> history, const SpeculationOptions& wishes,
                       const DraftContext& context) {
  const SpeculatorOptions& options = state_->options;
  Slot& slot = state_->SlotOf(seq);
  slot.n_max = wishes.n_max < 0 ? options.n_max : std::min(wishes.n_max, options.n_max);
  slot.n_min = wishes.n_min < 0 ? options.n_min : wishes.n_min;
  slot.p_min = wishes.p_min < 0 ? options.p_min : wishes.p_min;
  slot.speculates = wishes.enabled && slot.n_max > 0 && !state_->seats.empty();
  slot.rejecting = context.distributions;
  slot.generated = 0;
  slot.seconds = slot.plain_seconds = 0;
  slot.draft.Clear();
  slot.stats = state_->stats;
  for (DrafterStats& stats : slot.stats) stats = {stats.name};
  slot.allowed.assign(state_->seats.size(), false);
  if (!slot.speculates) return;
  for (size_t id = 0; id < state_->seats.size(); ++id) {
    Seat& seat = state_->seats[id];
    slot.allowed[id] = wishes.types.empty() ||
                       std::find(wishes.types.begin(), wishes.types.end(), seat.drafter->name()) != wishes.types.end();
    if (!slot.allowed[id]) continue;
    seat.Begin(seq, history, context);
  }
}

void Speculator::Commit(SeqId seq, std::span<const Token> history, int added) {
  State& state = *state_;
  Slot& slot = state.SlotOf(seq);
  state.committed += added;
  if (!slot.speculates) return;
  slot.generated += added;
  slot.committed = added;
  const std::span<const Token> said = history.last(static_cast<size_t>(added));

  bool right = true;
  for (size_t i = 0; i < slot.draft.tokens.size(); ++i) {
    const DraftToken& drafted = slot.draft.tokens[i];
    right = right && i < said.size() && said[i] == drafted.token;
    for (DrafterStats* stats :
         {&state.stats[static_cast<size_t>(drafted.source)], &slot.stats[static_cast<size_t>(drafted.source)]}) {
      ++stats->proposed;
      stats->accepted += right ? 1 : 0;
    }
  }
  slot.draft.Clear();

  for (size_t id = 0; id < state.seats.size(); ++id) {
    if (slot.allowed[id]) state.seats[id].Commit(seq, history, added);
  }
}

void Speculator::End(SeqId seq, std::span<const Token> history, bool complete) {
  Slot& slot = state_->SlotOf(seq);
  if (!slot.speculates) return;
  slot.speculates = false;
  slot.draft.Clear();
  for (size_t id = 0; id < state_->seats.size(); ++id) {
    if (slot.allowed[id]) state_->seats[id].drafter->End(seq, history, complete);
  }
}

void Speculator::Plan(std::span<const SpeculationTurn> turns, int other_rows, int room) {
  State& state = *state_;
  state.step.Begin(turns, other_rows);
  state.draft_rows = state.committed = 0;
  state.draft_seconds = 0;
  if (turns.empty()) return;
  for (const SpeculationTurn& turn : turns) state.SlotOf(turn.seq).draft.Clear();

  for (Seat& seat : state.seats) {
    if (!seat.drafter->computes()) state.AskLookup(seat);
  }
  for (Seat& seat : state.seats) {
    if (seat.drafter->computes()) state.AskComputing(seat);
  }
  state.Trim(room);
}

void Speculator::State::AskLookup(Seat& seat) {
  asked.clear();
  for (const SpeculationTurn& turn : step.turns()) {
    if (MayAsk(seat, turn)) Prepare(seat, turn, Room(turn), 0);
  }
  if (asked.empty()) return;
  Ask(seat);
  TakeBetter(seat, policy.LeastSurvival(step.Plain(), 0));
  WaitFor(seat);
}

// Waits for drafts that are on their way, if they are worth that.
void Speculator::State::WaitFor(Seat& seat) {
  double longest = 0;
  for (const SpeculationTurn& turn : step.turns()) {
    if (MayAsk(seat, turn)) longest = std::max(longest, seat.drafter->Due(turn.seq, turn.history));
  }
  if (longest == 0 || (!options.always && !BetterNowThanNext(seat, longest))) return;
  const auto due = [&](const SpeculationTurn& turn) {
    return MayAsk(seat, turn) && seat.drafter->Due(turn.seq, turn.history) > 0;
  };
  const double row_price = policy.LeastSurvival(step.Plain(), 0);
  offers = step.plain_sequences();
  outlooks.resize(step.turns().size());
  for (size_t i = 0; i < step.turns().size(); ++i) offers[i].survival = SlotOf(step.turns()[i].seq).DraftSurvival();
  const double without = policy.Gain(step.With(offers), 0);
  for (size_t i = 0; i < step.turns().size(); ++i) {
    if (!due(step.turns()[i])) continue;
    Foresee(seat, step.turns()[i], 1, row_price / 2, &outlooks[i]);
    if (WorthOf(outlooks[i], row_price) > WorthOf(offers[i].survival, row_price)) offers[i].survival = outlooks[i];
  }
  if (!options.always && policy.Gain(step.With(offers), longest) <= without) return;
  asked.clear();
  for (const SpeculationTurn& turn : step.turns()) {
    if (!due(turn)) continue;
    Prepare(seat, turn, Room(turn), 0);
    asked.back()->patience = longest;
  }
  Ask(seat);
  TakeBetter(seat, row_price);
}

// Whether to have drafts `seconds` late is better than to have them in the next step, with what is left of them. A
// plain step meanwhile brings a token for each sequence, of which the draft may have foreseen the first; if it has not,
// there is no draft in the next step either.
bool Speculator::State::BetterNowThanNext(const Seat& seat, double seconds) {
  double foreseen = 0;
  for (const SpeculationTurn& turn : step.turns())
    foreseen += seat.acceptance.TypicalAcceptance(turn.seq, 0) / step.generating();
  return seconds < policy.PlainSeconds(step.Plain()) * (1 - (1 - foreseen) / policy.speed_up()) * kHurry;
}

// What `seat` can be expected to draft for a turn, given the chance that what it continues is right: until a token's
// chance is below `least`.
void Speculator::State::Foresee(const Seat& seat, const SpeculationTurn& turn, double chance, double least,
                                std::vector<double>* outlook) {
  outlook->clear();
  for (int place = 0; place < Room(turn) && chance >= least; ++place) {
    chance *= seat.acceptance.TypicalAcceptance(turn.seq, place);
    outlook->push_back(chance);
  }
}

// A drafter that computes is asked for as many tokens as its record makes worth their cost; out of favour, for a few
// now and then.
void Speculator::State::AskComputing(Seat& seat) {
  int rounds = 0;
  const double gain = Outlook(seat, &rounds);
  const bool favoured = gain > 0 || options.always;
  if (!favoured) {
    rounds = kTrialRounds;
    if (!TrialAffordable(seat, rounds * seat.round_seconds.value() + ReadingSeconds(seat))) return;
  }
  if (step.prompt_rows() == 0) ReadUp(seat, gain);  // prompts in the step go first

  // Whether a token is worth verifying is decided when all are there; it is made if that alone is worth the time.
  // (Where four rows cost less than two, two unsure tokens may make a third one pay; where another number of rows than
  // in the last step costs something, to the number that was planned.)
  const double row_price = policy.LeastSurvival(step.Plain(), 0);
  const double making_price =
      policy.LeastSurvival(step.Plain(), seat.round_seconds.value() / step.generating()) - row_price;
  const bool to_the_end = !favoured || options.always || curve.SwitchSeconds() > 0;
  asked.clear();
  for (const SpeculationTurn& turn : step.turns()) {
    if (!MayAsk(seat, turn) || seat.drafter->Lag(turn.seq, turn.history) > 0) continue;
    const Slot& slot = SlotOf(turn.seq);
    const int given = Continues(slot) ? slot.draft.size() : 0;
    Prepare(seat, turn, std::min(given + rounds, Room(turn)), to_the_end ? 0 : making_price);
    if (given > 0) asked.back()->draft = slot.draft;
  }
  if (asked.empty()) return;
  int given = 0, made = 0;
  for (const Proposal* proposal : asked) given = std::max(given, proposal->draft.size());
  const double seconds = Ask(seat);
  for (const Proposal* proposal : asked) made = std::max(made, proposal->draft.size());
  seat.round_seconds.Observe(seconds / std::max(made - given, 1));
  if (!favoured) seat.trial_seconds += seconds;
  TakeBetter(seat, row_price);
}

// How many tokens `seat` should draft, and what that adds to the lookups' drafts, in tokens per step; 0 if nothing.
double Speculator::State::Outlook(Seat& seat, int* rounds) {
  const double round_seconds = seat.round_seconds.value();
  const double row_price = policy.LeastSurvival(step.Plain(), round_seconds / step.generating());
  outlooks.resize(step.turns().size());
  offers = step.plain_sequences();
  for (size_t i = 0; i < step.turns().size(); ++i) {
    const SpeculationTurn& turn = step.turns()[i];
    outlooks[i].clear();
    if (!MayAsk(seat, turn)) continue;
    const double chance = Continues(SlotOf(turn.seq)) ? SlotOf(turn.seq).survival.back() : 1;
    Foresee(seat, turn, chance, row_price / 2, &outlooks[i]);
    offers[i].survival = outlooks[i];
  }
  *rounds = options.always ? options.n_max : policy.ChooseRounds(step.With(offers), round_seconds);
  if (*rounds == 0) return 0;
  const auto most = static_cast<size_t>(*rounds);
  const auto gain = [&](bool with_seat) {
    offers = step.plain_sequences();
    for (size_t i = 0; i < step.turns().size(); ++i) {
      const Slot& slot = SlotOf(step.turns()[i].seq);
      std::vector<double>& outlook = outlooks[i];
      if (outlook.size() > most) outlook.resize(most);
      const bool better = with_seat && !outlook.empty() &&
                          (slot.draft.empty() || WorthOf(outlook, row_price) > WorthOf(slot.survival, row_price));
      if (better && !Continues(slot)) {
        offers[i].survival = outlook;
      } else if (!slot.draft.empty()) {
        if (better) outlook.insert(outlook.begin(), slot.survival.begin(), slot.survival.end());
        offers[i].survival = better ? outlook : slot.survival;
      }
    }
    return policy.Gain(step.With(offers), with_seat ? *rounds * round_seconds : 0);
  };
  const double without = gain(false);
  return std::max(0.0, gain(true) - without);
}

// What it would take `seat` to read all that it has not read of this step's sequences.
double Speculator::State::ReadingSeconds(const Seat& seat) {
  int tokens = 0;
  for (const SpeculationTurn& turn : step.turns()) {
    if (MayAsk(seat, turn)) tokens += seat.drafter->Lag(turn.seq, turn.history);
  }
  return tokens * seat.read_seconds.value();
}

// A computing drafter reads a slice of each prompt it has not seen, if the answer is likely to go on long enough for
// that to pay, or as a trial.
void Speculator::State::ReadUp(Seat& seat, double gain) {
  const double plain_seconds = policy.PlainSeconds(step.Plain());
  for (const SpeculationTurn& turn : step.turns()) {
    if (!MayAsk(seat, turn)) continue;
    const int lag = seat.drafter->Lag(turn.seq, turn.history);
    if (lag == 0) continue;
    const double per_token = seat.read_seconds.value();
    const int remaining = std::min(turn.room, std::max(SlotOf(turn.seq).generated, kLeastRemaining));
    const double earns = gain / step.generating() * remaining * plain_seconds;
    const bool pays = options.always || (seat.read_seconds.known() && lag * per_token <= earns);
    int slice = kSliceTokens;
    if (per_token > 0) slice = std::clamp(static_cast<int>(kSliceShare * plain_seconds / per_token), kLeastSlice, 512);
    slice = std::min(slice, lag);
    if (!pays && !TrialAffordable(seat, slice * per_token)) continue;
    Proposal& proposal = seat.proposals[static_cast<size_t>(turn.seq)];
    proposal.seq = turn.seq;
    Proposal* const whose[] = {&proposal};
    const double seconds = Timed(seat, whose, [&] { seat.drafter->CatchUp(turn.seq, turn.history, slice); });
    seat.read_seconds.Observe(seconds / slice);
    if (!pays) seat.trial_seconds += seconds;
  }
}

void Speculator::State::Prepare(Seat& seat, const SpeculationTurn& turn, int max_tokens, double least_survival) {
  Proposal& proposal = seat.proposals[static_cast<size_t>(turn.seq)];
  proposal.seq = turn.seq;
  proposal.history = turn.history;
  proposal.max_tokens = max_tokens;
  const bool blind = Blind(seat, SlotOf(turn.seq));
  proposal.p_min = blind ? 0 : SlotOf(turn.seq).p_min;
  proposal.least_survival = blind ? 0 : least_survival;
  proposal.patience = 0;
  proposal.draft.Clear();
  asked.push_back(&proposal);
}

template <typename Work>
double Speculator::State::Timed(Seat& seat, std::span<Proposal* const> whose, Work work) {
  const TimePoint start = clock.Now();
  work();
  const double seconds = Milliseconds(clock.Now() - start) / 1000;
  draft_seconds += seconds;
  stats[static_cast<size_t>(seat.id)].seconds += seconds;
  for (const Proposal* proposal : whose) SlotOf(proposal->seq).stats[static_cast<size_t>(seat.id)].seconds += seconds;
  return seconds;
}

// Fills the drafts of `asked`; returns the time it took.
double Speculator::State::Ask(Seat& seat) {
  const double seconds = Timed(seat, asked, [&] { seat.drafter->Propose(asked); });
  for (Proposal* proposal : asked) {
    Draft& draft = proposal->draft;
    if (draft.size() > proposal->max_tokens) draft.tokens.resize(static_cast<size_t>(proposal->max_tokens));
  }
  return seconds;
}

// Each sequence keeps the draft that is worth most if a row costs `row_price` tokens.
void Speculator::State::TakeBetter(Seat& seat, double row_price) {
  for (Proposal* proposal : asked) {
    Slot& slot = SlotOf(proposal->seq);
    std::vector<DraftToken>& tokens = proposal->draft.tokens;
    const size_t own_from = static_cast<size_t>(
        std::find_if(tokens.begin(), tokens.end(), [&](const DraftToken& t) { return t.source == kNoDrafter; }) -
        tokens.begin());
    for (size_t i = own_from; i < tokens.size(); ++i) tokens[i].source = seat.id;
    if (own_from == tokens.size()) continue;

    survival.assign(slot.survival.begin(), slot.survival.begin() + static_cast<std::ptrdiff_t>(own_from));
    seat.Survive(*proposal, own_from, Blind(seat, slot), &survival);
    const bool better =
        slot.draft.empty() || own_from > 0 || WorthOf(survival, row_price) > WorthOf(slot.survival, row_price);
    seat.Foretell(*proposal, own_from, better);
    if (!better) continue;
    std::swap(slot.draft, proposal->draft);
    std::swap(slot.survival, survival);
  }
}

// How many rows the turn's draft has to have to be what the engine has begun with; 0 if it is not that.
int Speculator::State::DraftUnderway(const SpeculationTurn& turn) {
  if (turn.underway.empty()) return 0;
  const std::vector<DraftToken>& draft = SlotOf(turn.seq).draft.tokens;
  const std::span<const Token> begun = turn.underway.subspan(1);
  const auto same = [](Token token, const DraftToken& drafted) { return token == drafted.token; };
  const bool agrees = begun.size() <= draft.size() && std::equal(begun.begin(), begun.end(), draft.begin(), same);
  return agrees ? static_cast<int>(begun.size()) : 0;
}

// Cuts the drafts down to what is worth verifying in this step.
void Speculator::State::Trim(int room) {
  offers = step.plain_sequences();
  for (size_t i = 0; i < step.turns().size(); ++i) {
    offers[i].survival = SlotOf(step.turns()[i].seq).DraftSurvival();
  }
  rows.assign(step.turns().size(), 0);
  const bool alone = step.turns().size() == 1 && step.prompt_rows() == 0;
  if (const int begun = alone ? std::min(DraftUnderway(step.turns()[0]), room) : 0; begun > 0) {
    rows[0] = begun;
  } else if (options.always) {
    for (size_t i = 0; i < step.turns().size(); ++i) {
      rows[i] = std::min(static_cast<int>(offers[i].survival.size()), room);
      room -= rows[i];
    }
  } else {
    policy.ChooseRows(step.With(offers), room, rows);
  }
  for (size_t i = 0; i < step.turns().size(); ++i) {
    Slot& slot = SlotOf(step.turns()[i].seq);
    if (rows[i] < slot.n_min) rows[i] = 0;
    slot.draft.tokens.resize(static_cast<size_t>(rows[i]));
    if (!slot.draft.distributions.empty()) slot.draft.distributions.resize(static_cast<size_t>(rows[i]));
    draft_rows += rows[i];
  }
}

void Speculator::LookAhead(SeqId seq, std::vector<Token>* ahead) {
  State& state = *state_;
  ahead->clear();
  const auto turn =
      std::find_if(state.step.turns().begin(), state.step.turns().end(), [seq](const auto& t) { return t.seq == seq; });
  if (turn == state.step.turns().end()) return;
  const std::vector<DraftToken>& draft = state.SlotOf(seq).draft.tokens;
  for (Seat& seat : state.seats) {
    if (!seat.drafter->goes_on() || !state.MayAsk(seat, *turn)) continue;
    const int most = std::min(static_cast<int>(draft.size()) + state.SlotOf(seq).n_max, turn->room);
    state.asked.clear();
    state.Prepare(seat, *turn, most, 0);
    Proposal& proposal = *state.asked.back();
    proposal.draft.tokens = draft;
    seat.drafter->Propose(state.asked);
    if (proposal.draft.tokens.size() <= draft.size() + ahead->size()) continue;
    ahead->clear();
    for (size_t i = draft.size(); i < proposal.draft.tokens.size(); ++i) {
      ahead->push_back(proposal.draft.tokens[i].token);
    }
  }
}

void Speculator::Drop(SeqId seq) {
  state_->SlotOf(seq).draft.Clear();
}

const Draft& Speculator::draft(SeqId seq) const {
  return state_->SlotOf(seq).draft;
}

void Speculator::ObserveStep(double seconds, bool whole) {
  State& state = *state_;
  state.stepping_seconds += seconds + state.draft_seconds;
  // What looked too dear once is tried again in the end.
  state.rollback.save_seconds *= kRemembered;
  state.rollback.restore_seconds *= kRemembered;
  const PlannedStep& step = state.step;
  const StepOutlook plain = step.Plain();
  state.step.Done(state.rows);
  if (step.turns().empty() || step.prompt_rows() > 0) return;
  const double plain_seconds = state.policy.PlainSeconds(plain);
  for (const SpeculationTurn& turn : state.step.turns()) {
    Slot& slot = state.SlotOf(turn.seq);
    if (!slot.speculates) continue;
    slot.seconds += seconds + state.draft_seconds;
    slot.plain_seconds += slot.committed * plain_seconds;
    slot.committed = 0;
  }
  const bool settled = state.curve.SwitchSeconds() == 0 || (step.alike() >= kStepsToSettle && step.parts().size() == 1);
  if (settled && step.parts_known() && whole) state.curve.Observe(step.parts(), step.context(), seconds);
  state.policy.Observe(plain, state.draft_rows, state.committed, seconds + state.draft_seconds);
}

void Speculator::ObserveSave(double seconds) {
  state_->draft_seconds += seconds;
  state_->save_seconds.Observe(seconds);
  state_->rollback.save_seconds = state_->save_seconds.value();
}

void Speculator::ObserveRestore(double seconds) {
  state_->draft_seconds += seconds;
  state_->restore_seconds.Observe(seconds);
  state_->rollback.restore_seconds = state_->restore_seconds.value();
}

void Speculator::Save() {
  for (const Seat& seat : state_->seats) seat.drafter->Save();
}

const std::vector<DrafterStats>& Speculator::stats() const {
  return state_->stats;
}

const std::vector<DrafterStats>& Speculator::stats(SeqId seq) const {
  return state_->SlotOf(seq).stats;
}

const CostCurve& Speculator::curve() const {
  return state_->curve;
}

double Speculator::speed_up() const {
  return state_->policy.speed_up();
}

double Speculator::speed_up(SeqId seq) const {
  const Slot& slot = state_->SlotOf(seq);
  return slot.seconds > 0 ? slot.plain_seconds / slot.seconds : 1;
}

std::string_view Speculator::name(DrafterId drafter) const {
  return drafter == kNoDrafter ? std::string_view() : state_->seats[static_cast<size_t>(drafter)].drafter->name();
}

}  // namespace outrider
