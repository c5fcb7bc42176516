// The scheduler's side that faces its callers: requests come in, wait, begin and are given up; slot actions; starting
// and stopping.
#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "base/log.h"
#include "scheduler/scheduler.h"

namespace outrider {
namespace {

TimePoint Later(TimePoint from, Duration by) {
  return by > TimePoint::max() - from ? TimePoint::max() : from + by;
}

}  // namespace

size_t CommonPrefix(std::span<const Token> a, std::span<const Token> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

Status Scheduler::Check(const GenerationRequest& request) const {
  const EngineInfo& info = engine_.info();
  if (request.prompt.empty()) return InvalidArgument("the prompt is empty", "prompt");
  if (static_cast<Pos>(request.prompt.size()) >= info.sequence_length) {
    return InvalidArgument(
        fmt::format("the prompt has {} tokens, but the context holds {} including the answer: shorten it, or start "
                    "the server with a larger --ctx-size",
                    request.prompt.size(), info.sequence_length),
        "prompt");
  }
  for (Token token : request.prompt) {
    if (!tokenizer_.Contains(token)) {
      return InvalidArgument(
          fmt::format("token {} is not in the vocabulary of {} tokens", token, tokenizer_.vocabulary_size()), "prompt");
    }
  }
  if (request.slot < -1 || request.slot >= info.n_sequences) {
    return InvalidArgument(fmt::format("slot {} does not exist; there are {}", request.slot, info.n_sequences),
                           "id_slot");
  }
  return {};
}

Result<std::shared_ptr<Generation>> Scheduler::Submit(GenerationRequest request) {
  if (Status status = Check(request); !status.ok()) return status;
  if (request.ignore_eos) {
    request.sampling.logit_bias.insert(request.sampling.logit_bias.end(), end_token_bans_.begin(),
                                       end_token_bans_.end());
  }
  // Building filters and grammar costs milliseconds; it happens on the caller's thread, not between steps.
  auto sampler = Sampler::Create(request.sampling, request.prompt, filters_);
  if (!sampler.ok()) return sampler.status();
  auto generation = std::make_shared<Generation>(std::move(request));
  {
    const std::lock_guard lock(mutex_);
    if (drain_until_) return Unavailable("the server is shutting down");
    // Requests that free slots will take before the next step do not count as waiting.
    const size_t free_slots = sequences_.size() - static_cast<size_t>(published_stats_.running);
    if (pending_.size() >= static_cast<size_t>(options_.max_queue) + free_slots) {
      ++refused_;
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("all {} slots are busy and {} requests wait already: try again later",
                                sequences_.size(), pending_.size()));
    }
    pending_.push_back({generation, std::move(*sampler), clock_.Now()});
  }
  work_.notify_one();
  return generation;
}

std::optional<FinishReason> Scheduler::Lost(const Generation& generation, TimePoint submitted, TimePoint now) const {
  if (generation.cancelled()) return FinishReason::kCancelled;
  const TimePoint deadline = Later(submitted, std::min(generation.request().deadline, options_.max_request_time));
  if (now >= deadline || (cut_at_ && now >= *cut_at_)) return FinishReason::kTimeLimit;
  return std::nullopt;
}

void Scheduler::EndLost() {
  const TimePoint now = clock_.Now();
  for (Sequence& sequence : sequences_) {
    if (!sequence.busy()) continue;
    if (const auto reason = Lost(*sequence.generation, sequence.submitted, now)) {
      Finish(sequence, *reason);
    } else if (sequence.generating() && now >= Later(sequence.first_token, sequence.generation->request().time_limit)) {
      Finish(sequence, FinishReason::kTimeLimit);
    }
  }
}

void Scheduler::Admit() {
  begun_.clear();
  TakePending();
  // Drafters read the prompt: not while others wait for the lock.
  for (const Sequence* sequence : begun_) {
    const GenerationRequest& request = sequence->generation->request();
    speculator_->Begin(sequence->id, sequence->tokens, request.speculation,
                       {request.sampling, request.owner, ModeFor(request) == VerifyMode::kReject});
  }
}

void Scheduler::TakePending() {
  const TimePoint now = clock_.Now();
  const std::lock_guard lock(mutex_);
  for (auto request = pending_.begin(); request != pending_.end();) {
    if (const auto reason = Lost(*request->generation, request->submitted, now)) {
      Chunk chunk;
      chunk.completion.emplace();
      chunk.completion->reason = *reason;
      chunk.completion->seed = request->sampler->seed();
      if (*reason == FinishReason::kTimeLimit)
        chunk.completion->error = Unavailable("the request's time ran out while it waited");
      LogInfo("a request was given up after {:.0f} ms in the queue", Milliseconds(now - request->submitted));
      ++stats_.finished[static_cast<size_t>(*reason)];
      completions_.emplace_back(std::move(request->generation), std::move(chunk));
    } else if (Sequence* sequence = ChooseSequence(request->generation->request())) {
      Begin(*sequence, std::move(*request));
      begun_.push_back(sequence);
    } else {
      ++request;
      continue;
    }
    request = pending_.erase(request);
  }
  published_stats_.running =
      static_cast<int>(std::count_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.busy(); }));
}

// Tokens of the prompt that are in the memory of `sequence` and can be gone on from. The last one is always decoded:
// its row tells the first token of the answer.
Pos Scheduler::Reusable(const Sequence& sequence, const GenerationRequest& request) const {
  if (!request.reuse_prefix) return 0;
  const size_t shared = std::min(CommonPrefix(sequence.tokens, request.prompt), request.prompt.size() - 1);
  return engine_.TruncatedLength(sequence.id, static_cast<Pos>(shared));
}

// The idle sequence with the most to go on from; the least recently used of equals.
Sequence* Scheduler::ChooseSequence(const GenerationRequest& request) {
  Sequence* best = nullptr;
  Pos best_prefix = 0;
  for (Sequence& sequence : sequences_) {
    if (sequence.busy() || (request.slot >= 0 && request.slot != sequence.id)) continue;
    const Pos prefix = Reusable(sequence, request);
    if (best == nullptr || prefix > best_prefix || (prefix == best_prefix && sequence.last_used < best->last_used)) {
      best = &sequence;
      best_prefix = prefix;
    }
  }
  return best;
}

void Scheduler::Begin(Sequence& sequence, PendingRequest pending) {
  const GenerationRequest& request = pending.generation->request();
  const Pos kept = engine_.TruncateTo(sequence.id, Reusable(sequence, request));
  sequence.tokens = request.prompt;
  sequence.prompt_length = static_cast<Pos>(request.prompt.size());
  sequence.text = TextStream(request.stop);
  sequence.submitted = pending.submitted;
  sequence.admitted = clock_.Now();
  sequence.failed_steps = 0;
  sequence.suspect = false;
  sequence.timings = {};
  sequence.timings.cached_tokens = kept;
  sequence.timings.prompt_tokens = sequence.prompt_length - kept;
  sequence.timings.queue_ms = Milliseconds(sequence.admitted - sequence.submitted);
  sequence.generation = std::move(pending.generation);
  sequence.sampler = std::move(pending.sampler);
}

SchedulerStats Scheduler::Stats() const {
  const std::lock_guard lock(mutex_);
  SchedulerStats stats = published_stats_;
  stats.queued = static_cast<int>(pending_.size());
  stats.refused = refused_;
  return stats;
}

std::vector<SlotStatus> Scheduler::Slots() const {
  const std::lock_guard lock(mutex_);
  return published_slots_;
}

Result<Sequence*> Scheduler::IdleSequence(SeqId slot) {
  if (slot < 0 || slot >= static_cast<SeqId>(sequences_.size())) {
    return NotFound(fmt::format("slot {} does not exist; there are {}", slot, sequences_.size()));
  }
  Sequence& sequence = sequences_[static_cast<size_t>(slot)];
  if (sequence.busy()) return Unavailable(fmt::format("slot {} is busy", slot));
  return &sequence;
}

Result<SavedSlot> Scheduler::SaveSlot(SeqId slot) {
  Result<SavedSlot> saved = Internal("not run");
  RunBetweenSteps([&] {
    auto sequence = IdleSequence(slot);
    if (!sequence.ok()) {
      saved = sequence.status();
    } else if (auto state = engine_.SaveSequence(slot); !state.ok()) {
      saved = state.status();
    } else {
      saved = SavedSlot{(*sequence)->tokens, std::move(*state)};
    }
  });
  return saved;
}

Status Scheduler::RestoreSlot(SeqId slot, SavedSlot saved) {
  Status result;
  RunBetweenSteps([&] {
    auto sequence = IdleSequence(slot);
    result = sequence.status();
    if (!result.ok()) return;
    const bool known =
        std::all_of(saved.tokens.begin(), saved.tokens.end(), [&](Token t) { return tokenizer_.Contains(t); });
    result = known ? engine_.RestoreSequence(slot, saved.state, static_cast<Pos>(saved.tokens.size()))
                   : InvalidArgument("the saved tokens are not of this vocabulary");
    (*sequence)->tokens = result.ok() ? std::move(saved.tokens) : std::vector<Token>();
    if (!result.ok()) engine_.TruncateTo(slot, 0);
  });
  return result;
}

Result<int> Scheduler::EraseSlot(SeqId slot) {
  Result<int> erased = Internal("not run");
  RunBetweenSteps([&] {
    auto sequence = IdleSequence(slot);
    if (!sequence.ok()) {
      erased = sequence.status();
      return;
    }
    erased = static_cast<int>((*sequence)->tokens.size());
    engine_.TruncateTo(slot, 0);
    (*sequence)->tokens.clear();
  });
  return erased;
}

// Runs `command` on the stepping thread and waits for it; at once where nobody steps.
void Scheduler::RunBetweenSteps(std::function<void()> command) {
  std::promise<void> done;
  {
    const std::lock_guard lock(mutex_);
    if (stepping_) {
      commands_.push_back([&] {
        command();
        done.set_value();
      });
    } else {
      command();
      return;
    }
  }
  work_.notify_one();
  done.get_future().wait();
}

void Scheduler::RunCommands() {
  std::deque<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
    cut_at_ = drain_until_;
  }
  for (auto& command : commands) command();
}

void Scheduler::Start() {
  {
    const std::lock_guard lock(mutex_);
    stepping_ = true;
  }
  thread_ = std::thread([this] { Loop(); });
}

void Scheduler::Loop() {
  bool saved = false;
  while (true) {
    if (Step()) continue;
    std::unique_lock lock(mutex_);
    work_.wait(lock, [this] { return drain_until_ || !pending_.empty() || !commands_.empty(); });
    if (drain_until_ && pending_.empty() && commands_.empty()) {
      if (!std::exchange(saved, true)) {
        lock.unlock();  // files may be slow
        speculator_->Save();
        continue;
      }
      stepping_ = false;
      stopped_.notify_all();
      return;
    }
  }
}

void Scheduler::Drain(Duration limit) {
  {
    const std::lock_guard lock(mutex_);
    drain_until_ = std::min(drain_until_.value_or(TimePoint::max()), Later(clock_.Now(), limit));
  }
  work_.notify_one();
}

void Scheduler::WaitUntilStopped() {
  std::unique_lock lock(mutex_);
  stopped_.wait(lock, [this] { return !stepping_; });
}

}  // namespace outrider
