#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "sampling/gumbel.h"
#include "sampling/logprobs.h"
#include "spec/verify.h"

namespace outrider {
namespace {

const char* Name(FinishReason reason) {
  constexpr std::array<const char*, kFinishReasons> kNames = {"end of text", "stop string", "length",
                                                              "time limit",  "cancelled",   "error"};
  return kNames[static_cast<size_t>(reason)];
}

// One line for each request.
void LogFinished(const Completion& completion) {
  const GenerationTimings& t = completion.timings;
  const double rate = t.generate_ms > 0 ? (t.generated_tokens - 1) * 1000 / t.generate_ms : 0;
  std::string drafts;
  if (t.drafted_tokens > 0) {
    drafts = fmt::format(", {} of {} drafted accepted (", t.accepted_tokens, t.drafted_tokens);
    bool first = true;
    for (const DrafterStats& drafter : completion.drafters) {
      if (drafter.proposed == 0) continue;
      drafts += fmt::format("{}{} {}", first ? "" : ", ", drafter.name, drafter.accepted);
      first = false;
    }
    drafts += fmt::format("), about {:.2f}x plain", completion.speed_up);
  }
  LogInfo(
      "slot {}: prompt {} tokens ({} cached) in {:.0f} ms, {} tokens in {:.0f} ms ({:.1f} t/s{}), queued {:.0f} ms, {}",
      completion.slot, t.prompt_tokens + t.cached_tokens, t.cached_tokens, t.prompt_ms, t.generated_tokens,
      t.generate_ms, rate, drafts, t.queue_ms, Name(completion.reason));
}

Status NothingToDraw(const GenerationRequest& request) {
  return request.sampling.grammar.text.empty()
             ? Internal("no token can be drawn: all are banned, or the logits are not numbers")
             : InvalidArgument("the grammar allows no token here", "grammar");
}

}  // namespace

Scheduler::Scheduler(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters,
                     const SchedulerOptions& options, std::unique_ptr<Speculator> speculator, const Clock& clock)
    : engine_(engine),
      tokenizer_(tokenizer),
      filters_(filters),
      options_(options),
      clock_(clock),
      speculator_(speculator ? std::move(speculator)
                             : std::make_unique<Speculator>(std::vector<std::unique_ptr<Drafter>>(), CostCurve(),
                                                            SpeculatorOptions(), engine.info().n_sequences, clock)) {
  sequences_.resize(static_cast<size_t>(engine.info().n_sequences));
  for (size_t i = 0; i < sequences_.size(); ++i) sequences_[i].id = static_cast<SeqId>(i);
  for (Token token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (tokenizer.EndsGeneration(token)) end_token_bans_.emplace_back(token, -std::numeric_limits<float>::infinity());
  }
  engine_.SetForesight([this](SeqId seq, std::vector<Token>* ahead) { speculator_->LookAhead(seq, ahead); });
  PublishStatus();
}

Scheduler::~Scheduler() {
  Drain(Duration::zero());
  if (thread_.joinable()) thread_.join();
  engine_.SetForesight({});
}

bool Scheduler::Step() {
  RunCommands();
  EndLost();
  Admit();
  Plan();
  if (!turns_.empty()) {
    Draft();
    if (Status status = Decode(); status.ok()) {
      Verify();
      Commit();
    } else {
      Isolate(status);
    }
  }
  PublishStatus();
  DeliverCompletions();
  return !turns_.empty();
}

// Every generating sequence gets its next row, after those of tokens that a rollback took along. Prompts share what is
// left, oldest first: one slice while others generate, so that nobody waits longer than that for a token; as much as
// the backend computes at once otherwise.
void Scheduler::Plan() {
  turns_.clear();
  const bool alone =
      std::any_of(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.busy() && s.suspect; });
  int generating_rows = 0;
  for (Sequence& sequence : sequences_) {
    if (!sequence.busy() || (alone && !sequence.suspect)) continue;
    turns_.push_back({&sequence, Missing(sequence)});
    if (GoesOn(turns_.back())) generating_rows += turns_.back().rows;
    if (alone) break;
  }
  const EngineInfo& info = engine_.info();
  const int slice = generating_rows > 0 ? options_.prompt_slice : info.micro_batch;
  ShareRows(std::min(slice, info.max_batch - generating_rows));
}

// Committed tokens that are not in memory.
int Scheduler::Missing(const Sequence& sequence) const {
  return static_cast<int>(sequence.tokens.size()) - engine_.Length(sequence.id);
}

// Whether the turn needs its next row only, or a few before it again; a prompt otherwise.
bool Scheduler::GoesOn(const Turn& turn) const {
  const EngineInfo& info = engine_.info();
  return turn.rows == 1 || (turn.sequence->generating() &&
                            turn.rows <= std::min(options_.prompt_slice, info.max_batch / info.n_sequences));
}

// Cuts the turns of prompts down to `rows` together, oldest request first; those that get none
// sit this step out. Nobody gets more rows than the oldest, and nobody but the oldest a piece that fills the rest:
// libllama computes a batch in parts of equally many rows per sequence, and small parts waste the machine.
void Scheduler::ShareRows(int rows) {
  prompts_.clear();
  for (Turn& turn : turns_) {
    if (!GoesOn(turn)) prompts_.push_back(&turn);
  }
  std::sort(prompts_.begin(), prompts_.end(),
            [](const Turn* a, const Turn* b) { return a->sequence->submitted < b->sequence->submitted; });
  for (Turn* turn : prompts_) {
    const int wanted = std::min(turn->rows, prompts_.front()->rows);
    turn->rows = turn == prompts_.front() ? std::min(wanted, rows) : (wanted <= rows ? wanted : 0);
    LeaveTail(*turn);
    rows -= turn->rows;
  }
  std::erase_if(turns_, [](const Turn& turn) { return turn.rows == 0; });
}

// A running state can be remembered only between steps. The best place is shortly before the end of a prompt: who asks
// again, or asks something else, shares what lies before.
void Scheduler::LeaveTail(Turn& turn) const {
  constexpr int kTail = 32, kWorthwhile = 256;  // tokens
  const Sequence& sequence = *turn.sequence;
  const bool ends = turn.rows == Missing(sequence) && !sequence.generating();
  const bool worthwhile = sequence.timings.prompt_tokens >= kWorthwhile && turn.rows > kTail;
  if (engine_.info().remembers && ends && worthwhile) turn.rows -= kTail;
}

// Sequences past their first token may have drafts verified along with their next row.
void Scheduler::Draft() {
  speculation_turns_.clear();
  int rows = 0, speculating_rows = 0;
  for (const Turn& turn : turns_) {
    rows += turn.rows;
    if (!MaySpeculate(turn)) continue;
    const Sequence& sequence = *turn.sequence;
    speculation_turns_.push_back(
        {sequence.id, sequence.tokens, DraftRoom(sequence), turn.rows, engine_.Underway(sequence.id, sequence.tokens)});
    speculating_rows += turn.rows;
  }
  const EngineInfo& info = engine_.info();
  const int room = std::min(info.max_batch - rows, info.max_outputs - static_cast<int>(turns_.size()));
  Timed(&GenerationTimings::draft_ms, [&] { speculator_->Plan(speculation_turns_, rows - speculating_rows, room); });

  batch_.Clear();
  for (Turn& turn : turns_) {
    if (MaySpeculate(turn)) turn.draft = speculator_->draft(turn.sequence->id).tokens;
    AddRows(turn);
  }
  SaveStates();
}

// Where drafts could not be taken back otherwise.
void Scheduler::SaveStates() {
  const int free = engine_.FreeRollback(batch_);
  for (const Turn& turn : turns_) {
    if (turn.draft.empty() || static_cast<int>(turn.draft.size()) <= free) continue;
    const TimePoint start = clock_.Now();
    engine_.SaveState(turn.sequence->id);
    const double ms = Milliseconds(clock_.Now() - start);
    turn.sequence->timings.rollback_ms += ms;
    speculator_->ObserveSave(ms / 1000);
  }
}

bool Scheduler::MaySpeculate(const Turn& turn) const {
  const Sequence& sequence = *turn.sequence;
  return sequence.generating() && !sequence.suspect && GoesOn(turn) && turn.rows == Missing(sequence);
}

// Until max_tokens or the context's end.
int Scheduler::TokensLeft(const Sequence& sequence) const {
  const int room = engine_.info().sequence_length - static_cast<Pos>(sequence.tokens.size());
  const int limit = sequence.generation->request().max_tokens;
  return limit < 0 ? room : std::min(room, limit - sequence.timings.generated_tokens);
}

// Draft tokens that fit, with the token that follows them.
int Scheduler::DraftRoom(const Sequence& sequence) const {
  return engine_.info().rollback == Rollback::kNone ? 0 : TokensLeft(sequence) - 1;
}

// The next `turn.rows` tokens that are not in memory yet. The last committed one tells what follows, and so does each
// token of the draft.
void Scheduler::AddRows(Turn& turn) {
  const Sequence& sequence = *turn.sequence;
  const auto committed = static_cast<Pos>(sequence.tokens.size());
  Pos pos = engine_.Length(sequence.id);
  for (const Pos end = pos + turn.rows; pos < end; ++pos) {
    const bool last = pos == committed - 1;
    const int row = batch_.Add({sequence.tokens[static_cast<size_t>(pos)], pos, sequence.id, last});
    if (last) turn.logits_row = row;
  }
  for (const DraftToken& token : turn.draft) batch_.Add({token.token, pos++, sequence.id, true});
}

// Does a stage of the step, and adds its time to that of every generating sequence in the step. Returns milliseconds.
template <typename Work>
double Scheduler::Timed(double GenerationTimings::*stage, Work work) {
  const TimePoint start = clock_.Now();
  work();
  const double ms = Milliseconds(clock_.Now() - start);
  for (const Turn& turn : turns_) {
    if (turn.sequence->generating()) turn.sequence->timings.*stage += ms;
  }
  return ms;
}

Status Scheduler::Decode() {
  Status status;
  decode_start_ = clock_.Now();
  const double ms = Timed(&GenerationTimings::decode_ms, [&] { status = engine_.Decode(batch_); });
  stats_.step_seconds.Observe(ms / 1000);
  stats_.step_rows.Observe(batch_.size());
  ++stats_.steps;
  stats_.foreseen_steps += engine_.WasUnderway();
  stats_.rows += static_cast<uint64_t>(batch_.size());
  return status;
}

// The target says its token for each row, as far as the draft foresaw them.
void Scheduler::Verify() {
  Timed(&GenerationTimings::sample_ms, [&] {
    for (Turn& turn : turns_) {
      turn.sequence->drawn.clear();
      if (turn.logits_row < 0) continue;
      turn.accepted = WalkDraft(
          turn.draft, [&](int row) { return DrawRow(turn, row); },
          [&](int row, Token token) { return KeepDrawn(turn, row, token); });
    }
  });
}

Token Scheduler::DrawRow(const Turn& turn, int row) {
  Sampler& sampler = *turn.sequence->sampler;
  const auto position = static_cast<Pos>(turn.sequence->tokens.size()) + row;
  const Token token = sampler.Draw(engine_.Logits(turn.logits_row + row), position);
  const auto place = static_cast<size_t>(row);
  const bool drafted = place < turn.draft.size() && token != kNoToken;
  if (!drafted || ModeFor(turn.sequence->generation->request()) == VerifyMode::kMatch) return token;

  target_.clear();
  for (const Candidate& c : sampler.LastCandidates()) target_.push_back({c.token, c.probability});
  const auto& distributions = speculator_->draft(turn.sequence->id).distributions;
  const std::span<const TokenProbability> drawn_from = place < distributions.size()
                                                           ? std::span<const TokenProbability>(distributions[place])
                                                           : std::span<const TokenProbability>();
  return DrawByRejection(target_, turn.draft[place].token, drawn_from,
                         PositionCoin(sampler.seed(), position, Coin::kAcceptDraft),
                         PositionCoin(sampler.seed(), position, Coin::kResidual));
}

// Under a grammar what a token was drawn from is not known (the whole vocabulary is constrained only if need be), so it
// is matched.
VerifyMode Scheduler::ModeFor(const GenerationRequest& request) const {
  return request.sampling.grammar.text.empty() ? options_.verify : VerifyMode::kMatch;
}

// Returns whether another token may follow.
bool Scheduler::KeepDrawn(const Turn& turn, int row, Token token) {
  Sequence& sequence = *turn.sequence;
  sequence.drawn.push_back(Describe(turn, row, token));
  if (token == kNoToken || tokenizer_.EndsGeneration(token)) return false;
  sequence.sampler->Accept(token);
  return true;
}

void Scheduler::Commit() {
  restore_ms_ = 0;
  for (const Turn& turn : turns_) {
    turn.sequence->suspect = false;
    if (!turn.sequence->generating()) engine_.Remember(turn.sequence->id);
    if (turn.logits_row >= 0) CommitDrawn(turn);
  }
  speculator_->ObserveStep((Milliseconds(clock_.Now() - decode_start_) - restore_ms_) / 1000, !engine_.WasUnderway());
  stats_.step_cost_ratio.Observe(speculator_->curve().last_ratio());
}

void Scheduler::CommitDrawn(const Turn& turn) {
  Sequence& sequence = *turn.sequence;
  const auto before = sequence.tokens.size();
  const TimePoint now = clock_.Now();
  if (!sequence.generating()) {
    sequence.first_token = now;
    sequence.timings.prompt_ms = Milliseconds(now - sequence.admitted);
    stats_.first_token_seconds.Observe(Milliseconds(now - sequence.submitted) / 1000);
  }
  const double until_now = Milliseconds(now - sequence.first_token);
  const double step_ms = until_now - std::exchange(sequence.timings.generate_ms, until_now);

  std::optional<FinishReason> end;
  for (auto token = sequence.drawn.begin(); !end && token != sequence.drawn.end(); ++token) {
    end = Append(sequence, std::move(*token));
  }
  const auto added = static_cast<int>(sequence.tokens.size() - before);
  const int accepted = std::min(turn.accepted, added);
  sequence.timings.drafted_tokens += static_cast<int>(turn.draft.size());
  sequence.timings.accepted_tokens += accepted;
  if (!turn.draft.empty()) stats_.accepted_length.Observe(accepted);
  if (sequence.generation->request().speculation.provenance && before > static_cast<size_t>(sequence.prompt_length)) {
    sequence.steps.push_back({turn.draft.empty() ? "" : speculator_->name(turn.draft[0].source),
                              static_cast<int>(turn.draft.size()), accepted, step_ms});
  }
  speculator_->Commit(sequence.id, sequence.tokens, added);
  // What the draft got wrong, or what was foreseen past the end, leaves the memory.
  const Pos right = static_cast<Pos>(before) + accepted;
  if (engine_.Length(sequence.id) > right) TakeBack(sequence, right);
  if (end) {
    Finish(sequence, *end, *end == FinishReason::kError ? NothingToDraw(sequence.generation->request()) : Status());
    return;
  }
  Chunk chunk;
  sequence.text.Release(/*last=*/false, &chunk);
  chunk.timings = sequence.timings;
  if (!chunk.text.empty() || !chunk.tokens.empty()) sequence.generation->Push(std::move(chunk));
}

void Scheduler::TakeBack(Sequence& sequence, Pos length) {
  const TimePoint start = clock_.Now();
  const Pos kept = engine_.TruncateTo(sequence.id, length);
  const double ms = Milliseconds(clock_.Now() - start);
  sequence.timings.rollback_ms += ms;
  sequence.timings.replayed_tokens += length - kept;
  restore_ms_ += ms;
  if (kept < length) speculator_->ObserveRestore(ms / 1000);
}

// Adds a token that the target said to the sequence and its text; tells whether, and why, the generation ends with it.
std::optional<FinishReason> Scheduler::Append(Sequence& sequence, GeneratedToken drawn) {
  const Token token = drawn.token;
  const int max_tokens = sequence.generation->request().max_tokens;
  if (token == kNoToken) return FinishReason::kError;
  if (max_tokens == 0) return FinishReason::kLength;  // the prompt was to be put into memory, no more
  ++sequence.timings.generated_tokens;
  if (tokenizer_.EndsGeneration(token)) return FinishReason::kEndOfText;
  const bool stopped = sequence.text.Append(std::move(drawn));
  sequence.tokens.push_back(token);
  if (stopped) return FinishReason::kStopString;
  const bool full = static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length;
  if (full || sequence.timings.generated_tokens == max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

// The token as the consumer sees it, with log probabilities if the request wants them.
GeneratedToken Scheduler::Describe(const Turn& turn, int row, Token token) {
  const GenerationRequest& request = turn.sequence->generation->request();
  GeneratedToken described;
  described.token = token;
  if (token == kNoToken || tokenizer_.EndsGeneration(token)) return described;
  described.piece = tokenizer_.Piece(token, request.show_special);
  const auto place = static_cast<size_t>(row);
  if (place < turn.draft.size() && turn.draft[place].token == token) {
    described.drafter = speculator_->name(turn.draft[place].source);
  }
  if (request.top_logprobs < 0) return described;
  if (request.probabilities_after_filters) {
    for (const Candidate& candidate : turn.sequence->sampler->LastCandidates()) {
      const float logprob = std::log(candidate.probability);
      if (candidate.token == token) described.logprob = logprob;
      if (static_cast<int>(described.top.size()) < request.top_logprobs) {
        described.top.push_back({candidate.token, logprob});
      }
    }
    return described;
  }
  const std::span<const float> logits = engine_.Logits(turn.logits_row + row);
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](Token t) { return static_cast<float>(logits[static_cast<size_t>(t)] - normaliser); };
  described.logprob = logprob(token);
  for (Token best : BestTokens(logits, request.top_logprobs)) described.top.push_back({best, logprob(best)});
  return described;
}

// A step failed. If several sequences took part, or drafts, each is tried alone and without, so that only those at
// fault pay. Memory that the failure left in doubt is given up; the tokens are decoded again.
void Scheduler::Isolate(const Status& error) {
  LogError("step of {} rows failed: {}", batch_.size(), error.message());
  constexpr int kMostFailures = 3;  // a sequence may fail only in company; it is not retried for ever
  for (const Turn& turn : turns_) {
    Sequence& sequence = *turn.sequence;
    engine_.TruncateTo(sequence.id, 0);
    const bool alone = turns_.size() == 1 && turn.draft.empty();
    speculator_->Drop(sequence.id);
    if (alone || ++sequence.failed_steps == kMostFailures) {
      Finish(sequence, FinishReason::kError, error);
    } else {
      sequence.suspect = true;
    }
  }
}

// The drafters that did something for the request in `seq`.
std::vector<DrafterStats> Scheduler::DraftersOf(SeqId seq) const {
  std::vector<DrafterStats> drafters = speculator_->stats(seq);
  std::erase_if(drafters, [](const DrafterStats& stats) { return stats.seconds == 0 && stats.proposed == 0; });
  return drafters;
}

void Scheduler::Finish(Sequence& sequence, FinishReason reason, Status error) {
  Chunk chunk;
  sequence.text.Release(/*last=*/true, &chunk);
  const GenerationTimings& timings = chunk.timings = sequence.timings;
  const bool complete =
      reason == FinishReason::kEndOfText || reason == FinishReason::kStopString || reason == FinishReason::kLength;
  speculator_->End(sequence.id, sequence.tokens, complete);
  chunk.completion = Completion{reason,
                                sequence.text.matched(),
                                std::move(error),
                                timings,
                                sequence.sampler->seed(),
                                sequence.id,
                                DraftersOf(sequence.id),
                                speculator_->speed_up(sequence.id),
                                std::move(sequence.steps)};
  sequence.steps.clear();

  ++stats_.finished[static_cast<size_t>(reason)];
  stats_.prompt_tokens += static_cast<uint64_t>(timings.prompt_tokens);
  stats_.cached_tokens += static_cast<uint64_t>(timings.cached_tokens);
  stats_.generated_tokens += static_cast<uint64_t>(timings.generated_tokens);
  stats_.prompt_seconds += timings.prompt_ms / 1000;
  stats_.generate_seconds += timings.generate_ms / 1000;
  LogFinished(*chunk.completion);

  completions_.emplace_back(std::move(sequence.generation), std::move(chunk));
  sequence.sampler.reset();
  sequence.tokens.resize(static_cast<size_t>(engine_.Length(sequence.id)));
  sequence.last_used = clock_.Now();
}

// Who learns that a request is done finds its slot free and the counters up to date.
void Scheduler::DeliverCompletions() {
  for (auto& [generation, chunk] : completions_) generation->Push(std::move(chunk));
  completions_.clear();
}

void Scheduler::PublishStatus() {
  const std::lock_guard lock(mutex_);
  stats_.running = 0;
  published_slots_.resize(sequences_.size());
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const Sequence& sequence = sequences_[i];
    stats_.running += sequence.busy() ? 1 : 0;
    SlotStatus& slot = published_slots_[i];
    slot.id = sequence.id;
    slot.busy = sequence.busy();
    slot.tokens_in_memory = engine_.Length(sequence.id);
    slot.prompt_tokens = sequence.prompt_length;
    slot.generated_tokens = sequence.timings.generated_tokens;
    slot.tokens_left = sequence.busy() ? TokensLeft(sequence) : -1;
  }
  stats_.drafters = speculator_->stats();
  stats_.speed_up = speculator_->speed_up();
  published_stats_ = stats_;
}

}  // namespace outrider
