#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/log.h"
#include "sampling/logprobs.h"

namespace outrider {
namespace {

const char* Name(FinishReason reason) {
  constexpr std::array<const char*, kFinishReasons> kNames = {"end of text", "stop string", "length",
                                                              "time limit",  "cancelled",   "error"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace

Scheduler::Scheduler(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters,
                     const SchedulerOptions& options, const Clock& clock)
    : engine_(engine), tokenizer_(tokenizer), filters_(filters), options_(options), clock_(clock) {
  sequences_.resize(static_cast<size_t>(engine.info().n_sequences));
  for (size_t i = 0; i < sequences_.size(); ++i) sequences_[i].id = static_cast<SeqId>(i);
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
  RunCommands();
  EndLost();
  Admit();
  Plan();
  if (!batch_.empty()) {
    if (Status status = Decode(); status.ok()) {
      Verify();
      Commit();
    } else {
      Isolate(status);
    }
  }
  PublishStatus();
  DeliverCompletions();
  return !batch_.empty();
}

// Every generating sequence gets its next row. Prompts share what is left, oldest first: one slice while others
// generate, so that nobody waits longer than that for a token; as much as the backend computes at once otherwise.
void Scheduler::Plan() {
  batch_.Clear();
  turns_.clear();
  const bool alone =
      std::any_of(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.busy() && s.suspect; });
  int generating = 0;
  for (Sequence& sequence : sequences_) {
    if (!sequence.busy() || (alone && !sequence.suspect)) continue;
    const int missing = static_cast<int>(sequence.tokens.size()) - engine_.Length(sequence.id);
    turns_.push_back({&sequence, missing, -1, kNoToken});
    generating += missing == 1 ? 1 : 0;
    if (alone) break;
  }
  const EngineInfo& info = engine_.info();
  ShareRows(std::min(generating > 0 ? options_.prompt_slice : info.micro_batch, info.max_batch - generating));
  for (Turn& turn : turns_) AddRows(turn);
}

// Cuts the turns that miss more than their next row down to `rows` together, oldest request first; those that get none
// sit this step out. Nobody gets more rows than the oldest, and nobody but the oldest a piece that fills the rest:
// libllama computes a batch in parts of equally many rows per sequence, and small parts waste the machine.
void Scheduler::ShareRows(int rows) {
  prompts_.clear();
  for (Turn& turn : turns_) {
    if (turn.rows > 1) prompts_.push_back(&turn);
  }
  std::sort(prompts_.begin(), prompts_.end(),
            [](const Turn* a, const Turn* b) { return a->sequence->submitted < b->sequence->submitted; });
  for (Turn* turn : prompts_) {
    const int wanted = std::min(turn->rows, prompts_.front()->rows);
    turn->rows = turn == prompts_.front() ? std::min(wanted, rows) : (wanted <= rows ? wanted : 0);
    rows -= turn->rows;
  }
  std::erase_if(turns_, [](const Turn& turn) { return turn.rows == 0; });
}

// The next `turn.rows` tokens that are not in memory yet; the last committed one tells what follows.
void Scheduler::AddRows(Turn& turn) {
  const Sequence& sequence = *turn.sequence;
  const auto committed = static_cast<Pos>(sequence.tokens.size());
  const Pos begin = engine_.Length(sequence.id);
  for (Pos pos = begin; pos < begin + turn.rows; ++pos) {
    const bool last = pos == committed - 1;
    const int row = batch_.Add({sequence.tokens[static_cast<size_t>(pos)], pos, sequence.id, last});
    if (last) turn.logits_row = row;
  }
}

Status Scheduler::Decode() {
  const TimePoint start = clock_.Now();
  Status status = engine_.Decode(batch_);
  stats_.step_seconds.Observe(Milliseconds(clock_.Now() - start) / 1000);
  ++stats_.steps;
  stats_.rows += static_cast<uint64_t>(batch_.size());
  return status;
}

void Scheduler::Verify() {
  for (Turn& turn : turns_) {
    if (turn.logits_row < 0) continue;
    const auto position = static_cast<Pos>(turn.sequence->tokens.size());
    turn.drawn = turn.sequence->sampler->Draw(engine_.Logits(turn.logits_row), position);
  }
}

void Scheduler::Commit() {
  for (const Turn& turn : turns_) {
    turn.sequence->suspect = false;
    if (turn.logits_row >= 0) CommitToken(turn);
  }
}

void Scheduler::CommitToken(const Turn& turn) {
  Sequence& sequence = *turn.sequence;
  const GenerationRequest& request = sequence.generation->request();
  if (turn.drawn == kNoToken) {
    Finish(sequence, FinishReason::kError,
           request.sampling.grammar.text.empty()
               ? Internal("no token can be drawn: all are banned, or the logits are not numbers")
               : InvalidArgument("the grammar allows no token here", "grammar"));
    return;
  }
  const TimePoint now = clock_.Now();
  if (!sequence.generating()) {
    sequence.first_token = now;
    sequence.timings.prompt_ms = Milliseconds(now - sequence.admitted);
    stats_.first_token_seconds.Observe(Milliseconds(now - sequence.submitted) / 1000);
  }
  if (request.max_tokens == 0) {  // the prompt was to be put into memory, no more
    Finish(sequence, FinishReason::kLength);
    return;
  }
  ++sequence.timings.generated_tokens;
  sequence.timings.generate_ms = Milliseconds(now - sequence.first_token);

  if (tokenizer_.EndsGeneration(turn.drawn)) {
    Finish(sequence, FinishReason::kEndOfText);
    return;
  }
  const bool stopped = sequence.text.Append(Describe(turn));
  sequence.tokens.push_back(turn.drawn);
  sequence.sampler->Accept(turn.drawn);
  if (stopped) {
    Finish(sequence, FinishReason::kStopString);
  } else if (sequence.timings.generated_tokens == request.max_tokens ||
             static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length) {
    Finish(sequence, FinishReason::kLength);
  } else {
    Chunk chunk;
    sequence.text.Release(/*last=*/false, &chunk);
    chunk.timings = sequence.timings;
    if (!chunk.text.empty() || !chunk.tokens.empty()) sequence.generation->Push(std::move(chunk));
  }
}

// The token as the consumer sees it, with log probabilities if the request wants them.
GeneratedToken Scheduler::Describe(const Turn& turn) {
  const GenerationRequest& request = turn.sequence->generation->request();
  GeneratedToken token{turn.drawn, tokenizer_.Piece(turn.drawn, request.show_special), 0, {}};
  if (request.top_logprobs < 0) return token;
  if (request.probabilities_after_filters) {
    for (const Candidate& candidate : turn.sequence->sampler->LastCandidates()) {
      const float logprob = std::log(candidate.probability);
      if (candidate.token == turn.drawn) token.logprob = logprob;
      if (static_cast<int>(token.top.size()) < request.top_logprobs) token.top.push_back({candidate.token, logprob});
    }
    return token;
  }
  const std::span<const float> logits = engine_.Logits(turn.logits_row);
  const double normaliser = LogSumExp(logits);
  const auto logprob = [&](Token t) { return static_cast<float>(logits[static_cast<size_t>(t)] - normaliser); };
  token.logprob = logprob(turn.drawn);
  for (Token best : BestTokens(logits, request.top_logprobs)) token.top.push_back({best, logprob(best)});
  return token;
}

// A step failed. If several sequences took part, each is tried alone, so that only those at fault pay. Memory that the
// failure left in doubt is given up; the tokens are decoded again.
void Scheduler::Isolate(const Status& error) {
  LogError("step of {} rows failed: {}", batch_.size(), error.message());
  constexpr int kMostFailures = 3;  // a sequence may fail only in company; it is not retried for ever
  for (const Turn& turn : turns_) {
    Sequence& sequence = *turn.sequence;
    engine_.TruncateTo(sequence.id, 0);
    if (turns_.size() == 1 || ++sequence.failed_steps == kMostFailures) {
      Finish(sequence, FinishReason::kError, error);
    } else {
      sequence.suspect = true;
    }
  }
}

void Scheduler::Finish(Sequence& sequence, FinishReason reason, Status error) {
  Chunk chunk;
  sequence.text.Release(/*last=*/true, &chunk);
  const GenerationTimings& timings = chunk.timings = sequence.timings;
  chunk.completion =
      Completion{reason, sequence.text.matched(), std::move(error), timings, sequence.sampler->seed(), sequence.id};

  ++stats_.finished[static_cast<size_t>(reason)];
  stats_.prompt_tokens += static_cast<uint64_t>(timings.prompt_tokens);
  stats_.cached_tokens += static_cast<uint64_t>(timings.cached_tokens);
  stats_.generated_tokens += static_cast<uint64_t>(timings.generated_tokens);
  stats_.prompt_seconds += timings.prompt_ms / 1000;
  stats_.generate_seconds += timings.generate_ms / 1000;
  const double rate = timings.generate_ms > 0 ? (timings.generated_tokens - 1) * 1000 / timings.generate_ms : 0;
  LogInfo(
      "slot {}: prompt {} tokens ({} cached) in {:.0f} ms, {} tokens in {:.0f} ms ({:.1f} t/s), queued {:.0f} ms, {}",
      sequence.id, timings.prompt_tokens + timings.cached_tokens, timings.cached_tokens, timings.prompt_ms,
      timings.generated_tokens, timings.generate_ms, rate, timings.queue_ms, Name(reason));

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
    slot.tokens_left = -1;
    if (sequence.busy()) {
      const int room = engine_.info().sequence_length - static_cast<Pos>(sequence.tokens.size());
      const int limit = sequence.generation->request().max_tokens;
      slot.tokens_left = limit < 0 ? room : std::min(room, limit - sequence.timings.generated_tokens);
    }
  }
  published_stats_ = stats_;
}

}  // namespace outrider
