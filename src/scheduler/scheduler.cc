#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "scheduler/family.h"
#include "scheduler/prompt_progress.h"
#include "scheduler/request_check.h"
#include "scheduler/request_log.h"
#include "scheduler/token_report.h"

namespace outrider {
namespace {

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
      inbox_(options.max_queue, engine.info().n_sequences),
      speculator_(speculator ? std::move(speculator)
                             : std::make_unique<Speculator>(std::vector<std::unique_ptr<Drafter>>(), CostCurve(),
                                                            SpeculatorOptions(), engine, clock)),
      slots_(engine),
      step_(engine, options.prompt_slice),
      verifier_(engine, tokenizer, *speculator_, options.verify, clock) {
  for (Token token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (tokenizer.EndsGeneration(token)) end_token_bans_.emplace_back(token, -std::numeric_limits<float>::infinity());
  }
  PublishStatus();
}

Scheduler::~Scheduler() {
  Drain(Duration::zero());
  if (thread_.joinable()) thread_.join();
}

bool Scheduler::Step() {
  inbox_.RunCommands();
  EndLost();
  Admit();
  draw_budget_.Choose(slots_.sequences(), clock_.Now());
  step_.Plan(slots_.sequences());
  if (!step_.empty()) {
    ChooseDrafts();
    BuildBatch();
    SaveStates();
    if (Status status = Decode(); status.ok()) {
      Verify();
      Commit();
    } else {
      Isolate(status);
    }
  }
  PublishStatus();
  Deliver();
  return !step_.empty();
}

Result<std::shared_ptr<Generation>> Scheduler::Submit(GenerationRequest request) {
  if (Status status = CheckRequest(request, engine_.info(), tokenizer_); !status.ok()) return status;
  if (request.ignore_eos) {
    request.sampling.logit_bias.insert(request.sampling.logit_bias.end(), end_token_bans_.begin(),
                                       end_token_bans_.end());
  }
  // Building filters and grammar takes milliseconds, and computing pictures seconds, so it is done on the caller's
  // thread and not between steps.
  auto sampler = Sampler::Create(request.sampling, TextTokens(request.prompt, request.media), filters_);
  if (!sampler.ok()) return sampler.status();
  for (const MediaSpan& span : request.media) {
    if (Status status = span.rows->Compute(); !status.ok()) return status;
  }
  auto generation = std::make_shared<Generation>(std::move(request));
  if (Status status = inbox_.Add({generation, std::move(*sampler), clock_.Now()}); !status.ok()) return status;
  return generation;
}

// Why a request must end before its answer is complete; nullopt if it need not.
std::optional<FinishReason> Scheduler::Lost(const Generation& generation, TimePoint submitted, TimePoint now) const {
  if (generation.cancelled()) return FinishReason::kCancelled;
  const TimePoint deadline = Later(submitted, std::min(generation.request().deadline, options_.max_request_time));
  if (now >= deadline || (stop_until_ && now >= *stop_until_)) return FinishReason::kTimeLimit;
  return std::nullopt;
}

void Scheduler::EndLost() {
  stop_until_ = inbox_.stop_until();
  const TimePoint now = clock_.Now();
  for (Sequence& sequence : slots_.sequences()) {
    if (!sequence.busy()) continue;
    if (const auto reason = Lost(*sequence.generation, sequence.submitted, now)) {
      Finish(sequence, *reason);
    } else if (sequence.generating() && now >= Later(sequence.first_token, sequence.generation->request().time_limit)) {
      Finish(sequence, FinishReason::kTimeLimit);
    }
  }
}

void Scheduler::Admit() {
  const TimePoint now = clock_.Now();
  std::vector<PendingRequest> waiting = inbox_.TakeAll(), left;
  bool begun = false;
  for (PendingRequest& pending : waiting) {
    if (const auto reason = Lost(*pending.generation, pending.submitted, now)) {
      GiveUp(std::move(pending), *reason, now);
    } else if (FamilyIsReading(slots_.sequences(), pending.generation->request())) {
      left.push_back(std::move(pending));
    } else if (Sequence* sequence = slots_.Begin(pending, clock_.Now())) {
      begun = true;
      ShareFamilyPrompt(slots_.sequences(), engine_, sequence);
      const GenerationRequest& request = sequence->generation->request();
      speculator_->Begin(sequence->id, sequence->tokens, request.speculation,
                         {request.sampling, request.owner, verifier_.ModeFor(request) == VerifyMode::kReject});
      ReportProgress(*sequence, sequence->admitted);
    } else {
      left.push_back(std::move(pending));
    }
  }
  inbox_.PutBack(std::move(left), engine_.info().n_sequences - slots_.busy());
  if (!begun) return;
  PublishStatus();  // a prompt may take long
  Deliver();
}

void Scheduler::ReportProgress(const Sequence& sequence, TimePoint now) {
  if (!sequence.generation->request().report_progress) return;
  outbox_.emplace_back(sequence.generation, ProgressChunk(sequence, engine_.Length(sequence.id), now));
}

// Ends a request that has never run.
void Scheduler::GiveUp(PendingRequest request, FinishReason reason, TimePoint now) {
  Chunk chunk;
  chunk.completion.emplace();
  chunk.completion->reason = reason;
  chunk.completion->seed = request.sampler->seed();
  if (reason == FinishReason::kTimeLimit)
    chunk.completion->error = Unavailable("the request's time ran out while it waited");
  LogNeverBegun(now - request.submitted);
  ++stats_.finished[static_cast<size_t>(reason)];
  outbox_.emplace_back(std::move(request.generation), std::move(chunk));
}

// Chooses drafts for the sequences that have generated at least one token. They are verified along with the next row.
void Scheduler::ChooseDrafts() {
  draftable_.clear();
  others_.clear();
  for (const StepEntry& entry : step_.entries()) {
    const Sequence& sequence = *entry.sequence;
    if (step_.MayDraft(entry)) {
      draftable_.push_back({sequence.id, sequence.tokens, DraftRoom(sequence), entry.rows});
    } else {
      others_.push_back({sequence.id, entry.rows});
    }
  }
  Timed(&GenerationTimings::draft_ms, [&] { speculator_->Plan(draftable_, others_, step_.room()); });
  for (StepEntry& entry : step_.entries()) {
    if (step_.MayDraft(entry)) entry.draft = speculator_->draft(entry.sequence->id).tokens;
  }
}

void Scheduler::BuildBatch() {
  for (StepEntry& entry : step_.entries()) step_.AddRows(entry, speculator_->WantsHidden(entry.sequence->id));
}

// Saves the state of each sequence whose draft is longer than what the engine can take back for free.
void Scheduler::SaveStates() {
  engine_.LayOut(step_.ListRows(), &layout_);
  for (const StepEntry& entry : step_.entries()) {
    if (entry.draft.empty() || static_cast<int>(entry.draft.size()) <= layout_.free_rollback) continue;
    const TimePoint start = clock_.Now();
    engine_.SaveState(entry.sequence->id);
    const double ms = Milliseconds(clock_.Now() - start);
    entry.sequence->timings.rollback_ms += ms;
    speculator_->ObserveSave(ms / 1000);
  }
}

// Max number of draft tokens. There must also be room for the token that the target generates after them.
int Scheduler::DraftRoom(const Sequence& sequence) const {
  return engine_.info().rollback == Rollback::kNone ? 0 : slots_.TokensLeft(sequence) - 1;
}

// Runs a stage of the step, adds its time to that of every generating sequence in it, and returns it (milliseconds).
template <typename Work>
double Scheduler::Timed(double GenerationTimings::*stage, Work work) {
  const TimePoint start = clock_.Now();
  work();
  const double ms = Milliseconds(clock_.Now() - start);
  for (const StepEntry& entry : step_.entries()) {
    if (entry.sequence->generating()) entry.sequence->timings.*stage += ms;
  }
  return ms;
}

Status Scheduler::Decode() {
  Status status;
  decode_start_ = clock_.Now();
  const double ms = Timed(&GenerationTimings::decode_ms, [&] { status = engine_.Decode(step_.batch()); });
  stats_.step_seconds.Observe(ms / 1000);
  stats_.step_rows.Observe(step_.batch().size());
  ++stats_.steps;
  stats_.busy_slots += static_cast<uint64_t>(slots_.busy());
  stats_.rows += static_cast<uint64_t>(step_.batch().size());
  return status;
}

void Scheduler::Verify() {
  const TimePoint start = clock_.Now();
  Timed(&GenerationTimings::sample_ms, [&] { verifier_.Verify(step_.entries()); });
  for (const StepEntry& entry : step_.entries()) {
    if (entry.logits_row >= 0)
      draw_budget_.Observe(*entry.sequence, entry.draw_time, start - decode_start_, clock_.Now());
  }
}

void Scheduler::Commit() {
  restore_ms_ = 0;
  for (const StepEntry& entry : step_.entries()) {
    entry.sequence->suspect = false;
    if (!entry.sequence->generating()) {
      engine_.Remember(entry.sequence->id);
      ReportProgress(*entry.sequence, clock_.Now());
    }
    if (entry.logits_row >= 0) {
      CommitDrawn(entry);
    } else if (speculator_->WantsHidden(entry.sequence->id)) {
      ReportToDrafters(entry, 0, 0);
    }
  }
  speculator_->ObserveStep((Milliseconds(clock_.Now() - decode_start_) - restore_ms_) / 1000);
  stats_.step_cost_ratio.Observe(speculator_->curve().last_ratio());
}

void Scheduler::CommitDrawn(const StepEntry& entry) {
  Sequence& sequence = *entry.sequence;
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
  for (int row = 0; !end && row < static_cast<int>(sequence.drawn.size()); ++row) end = Append(entry, row);
  const auto added = static_cast<int>(sequence.tokens.size() - before);
  const int accepted = std::min(entry.accepted, added);
  sequence.timings.drafted_tokens += static_cast<int>(entry.draft.size());
  sequence.timings.accepted_tokens += accepted;
  if (!entry.draft.empty()) stats_.accepted_length.Observe(accepted);
  if (sequence.generation->request().speculation.provenance && before > static_cast<size_t>(sequence.prompt_length)) {
    const DrafterId first = entry.draft.empty() ? kNoDrafter : entry.draft[0].source;
    sequence.steps.push_back(DescribeStep(sequence.generation->request(), tokenizer_, entry.draft, accepted,
                                          speculator_->name(first), step_ms));
  }
  ReportToDrafters(entry, added, accepted);
  // Removes draft tokens from memory that were rejected or lie past the end of the answer.
  const Pos right = static_cast<Pos>(before) + accepted;
  if (engine_.Length(sequence.id) > right) RollBack(sequence, right);
  if (end) {
    Finish(sequence, *end, *end == FinishReason::kError ? NothingToDraw(sequence.generation->request()) : Status());
    return;
  }
  Chunk chunk;
  sequence.text.Release(/*last=*/false, &chunk);
  chunk.timings = sequence.timings;
  if (!chunk.text.empty() || !chunk.tokens.empty()) outbox_.emplace_back(sequence.generation, std::move(chunk));
}

// Adds the token that was drawn from `row` to the sequence and its text. Returns why the generation ends, if it does.
std::optional<FinishReason> Scheduler::Append(const StepEntry& entry, int row) {
  Sequence& sequence = *entry.sequence;
  const GenerationRequest& request = sequence.generation->request();
  const auto place = static_cast<size_t>(row);
  const DrawnToken& drawn = sequence.drawn[place];
  if (drawn.token == kNoToken) return FinishReason::kError;
  if (request.max_tokens == 0) return FinishReason::kLength;  // the request only asked to read the prompt into memory
  ++sequence.timings.generated_tokens;
  if (drawn.ends) return FinishReason::kEndOfText;
  const DrafterId drafter = row < entry.accepted ? entry.draft[place].source : kNoDrafter;
  const bool stopped =
      sequence.text.Append(DescribeToken(request, tokenizer_, drawn.token, drawn.candidates,
                                         engine_.Logits(entry.logits_row + row), speculator_->name(drafter)));
  sequence.tokens.push_back(drawn.token);
  if (stopped) return FinishReason::kStopString;
  const bool full = static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length;
  if (full || sequence.timings.generated_tokens == request.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

// Tells the drafters which rows of the entry are final: its committed tokens and the first `accepted` draft tokens.
void Scheduler::ReportToDrafters(const StepEntry& entry, int added, int accepted) {
  const Sequence& sequence = *entry.sequence;
  const Pos first = step_.batch().rows()[static_cast<size_t>(entry.first_row)].pos;
  speculator_->Commit(sequence.id, {sequence.tokens, added, {first, entry.rows + accepted, &engine_, entry.first_row}},
                      accepted);
}

void Scheduler::RollBack(Sequence& sequence, Pos length) {
  const TimePoint start = clock_.Now();
  const Pos kept = engine_.TruncateTo(sequence.id, length);
  const double ms = Milliseconds(clock_.Now() - start);
  sequence.timings.rollback_ms += ms;
  sequence.timings.replayed_tokens += length - kept;
  restore_ms_ += ms;
  if (kept < length) speculator_->ObserveRestore(ms / 1000);
}

// After a failed step each of its sequences is decoded alone, without a draft, so that only those that cause a failure
// end with an error. Their memory is undefined after the failure: it is cleared, and the tokens are decoded again.
void Scheduler::Isolate(const Status& error) {
  LogError("step of {} rows failed: {}", step_.batch().size(), error.message());
  constexpr int kMaxFailures = 3;  // a sequence that fails only together with others must not be retried for ever
  for (const StepEntry& entry : step_.entries()) {
    Sequence& sequence = *entry.sequence;
    engine_.TruncateTo(sequence.id, 0);
    const bool alone = step_.entries().size() == 1 && entry.draft.empty();
    speculator_->Drop(sequence.id);
    if (alone || ++sequence.failed_steps == kMaxFailures) {
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
  chunk.timings = sequence.timings;
  const bool complete =
      reason == FinishReason::kEndOfText || reason == FinishReason::kStopString || reason == FinishReason::kLength;
  speculator_->End(sequence.id, sequence.tokens, complete);
  stats_.longest = std::max<uint64_t>(stats_.longest, sequence.tokens.size());
  chunk.completion = Completion{reason,
                                sequence.text.matched(),
                                std::move(error),
                                sequence.timings,
                                sequence.sampler->seed(),
                                sequence.id,
                                DraftersOf(sequence.id),
                                speculator_->speed_up(sequence.id),
                                std::move(sequence.steps)};
  chunk.completion->truncated =
      reason == FinishReason::kLength && static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length;
  sequence.steps.clear();
  CountFinished(*chunk.completion, &stats_);
  LogFinished(*chunk.completion);
  outbox_.emplace_back(sequence.generation, std::move(chunk));
  slots_.End(sequence, clock_.Now());
}

// At the end of a step: when a consumer learns that its request has ended, its slot is free and the counters are right.
void Scheduler::Deliver() {
  for (auto& [generation, chunk] : outbox_) generation->Push(std::move(chunk));
  outbox_.clear();
}

void Scheduler::PublishStatus() {
  stats_.running = slots_.busy();
  stats_.drafters = speculator_->stats();
  stats_.speed_up = speculator_->speed_up();
  stats_.lookahead_steps = speculator_->lookahead_steps();
  inbox_.SetFreeSlots(engine_.info().n_sequences - stats_.running);
  slots_.ListStatus(&slot_status_);
  status_.Publish(stats_, slot_status_);
}

SchedulerStats Scheduler::Stats() const {
  SchedulerStats stats = status_.stats();
  stats.queued = static_cast<int>(inbox_.waiting());
  stats.refused = inbox_.refused();
  return stats;
}

}  // namespace outrider
