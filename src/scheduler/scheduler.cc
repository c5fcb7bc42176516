#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "scheduler/family.h"
#include "scheduler/memory_owner.h"
#include "scheduler/prompt_progress.h"
#include "scheduler/request_check.h"
#include "scheduler/request_log.h"

namespace outrider {

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
      slots_(engine, options.cache_bytes),
      step_(engine, options.prompt_slice),
      verifier_(engine, tokenizer, *speculator_, options.verify, clock),
      committer_(engine, tokenizer, *speculator_, slots_, outbox_, stats_, clock) {
  for (Token token = 0; token < tokenizer.vocabulary_size(); ++token) {
    if (tokenizer.EndsGeneration(token)) end_token_bans_.emplace_back(token, -std::numeric_limits<float>::infinity());
  }
  stats_.adapter_requests.resize(static_cast<size_t>(engine.info().n_adapters));
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
  step_.ShareRows(slots_.sequences(), clock_.Now());
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
  outbox_.Deliver();
  return !step_.empty();
}

Result<std::shared_ptr<Generation>> Scheduler::Submit(GenerationRequest request) {
  if (Status status = CheckRequest(request, engine_.info(), tokenizer_); !status.ok()) return status;
  if (request.ignore_eos) {
    request.sampling.logit_bias.insert(request.sampling.logit_bias.end(), end_token_bans_.begin(),
                                       end_token_bans_.end());
  }
  // Building filters and grammar takes milliseconds, so it is done on the caller's thread and not between steps.
  auto sampler = Sampler::Create(request.sampling, TextTokens(request.prompt, request.media), filters_);
  if (!sampler.ok()) return sampler.status();
  // Nothing is left to compute if the caller has done it, as one should who has others waiting.
  const StillWanted always = [] { return true; };
  if (Status status = ComputeMedia(request.media, always); !status.ok()) return status;
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
      committer_.Finish(sequence, *reason);
    } else if (sequence.generating() && now >= Later(sequence.first_token, sequence.generation->request().time_limit)) {
      committer_.Finish(sequence, FinishReason::kTimeLimit);
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
                         {request.sampling, MemoryOwner(request.owner, request.adapters),
                          verifier_.ModeFor(request) == VerifyMode::kReject});
      ReportProgress(*sequence, engine_, sequence->admitted, &outbox_);
    } else {
      left.push_back(std::move(pending));
    }
  }
  inbox_.PutBack(std::move(left), engine_.info().n_sequences - slots_.busy());
  if (!begun) return;
  PublishStatus();  // a prompt may take long
  outbox_.Deliver();
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
  outbox_.Add(std::move(request.generation), std::move(chunk));
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
  Timed(&GenerationTimings::draft_ms, [&] { speculator_->ChooseDrafts(draftable_, others_, step_.room()); });
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
    if (!layout_.NeedsSavedState(static_cast<int>(entry.draft.size()))) continue;
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
  stats_.adapter_switches = step_.adapter_switches();
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
  const double rollback_ms = committer_.Commit(step_);
  speculator_->ObserveStep((Milliseconds(clock_.Now() - decode_start_) - rollback_ms) / 1000);
  stats_.step_cost_ratio.Observe(speculator_->curve().last_ratio());
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
      committer_.Finish(sequence, FinishReason::kError, error);
    } else {
      sequence.suspect = true;
    }
  }
}

void Scheduler::PublishStatus() {
  stats_.running = slots_.busy();
  stats_.cache_bytes = slots_.cache().bytes();
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
