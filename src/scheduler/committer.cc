#include "scheduler/committer.h"

#include <algorithm>
#include <utility>

#include "scheduler/prompt_progress.h"
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

double Committer::Commit(const StepBatch& step) {
  double rollback_ms = 0;
  for (const StepEntry& entry : step.entries()) {
    entry.sequence->suspect = false;
    if (!entry.sequence->generating()) {
      engine_.Remember(entry.sequence->id);
      ReportProgress(*entry.sequence, engine_, clock_.Now(), &outbox_);
    }
    if (entry.logits_row >= 0) {
      rollback_ms += CommitDrawn(step, entry);
    } else if (speculator_.WantsHidden(entry.sequence->id)) {
      ReportToDrafters(step, entry, 0, 0);
    }
  }
  return rollback_ms;
}

// Returns how many milliseconds the rollback took.
double Committer::CommitDrawn(const StepBatch& step, const StepEntry& entry) {
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
                                          speculator_.name(first), step_ms));
  }
  ReportToDrafters(step, entry, added, accepted);
  // Removes draft tokens from memory that were rejected or lie past the end of the answer.
  const Pos right = static_cast<Pos>(before) + accepted;
  const double rollback_ms = engine_.Length(sequence.id) > right ? RollBack(sequence, right) : 0;
  if (end) {
    Finish(sequence, *end, *end == FinishReason::kError ? NothingToDraw(sequence.generation->request()) : Status());
    return rollback_ms;
  }
  Chunk chunk;
  sequence.text.Release(/*last=*/false, &chunk);
  chunk.timings = sequence.timings;
  if (!chunk.text.empty() || !chunk.tokens.empty()) outbox_.Add(sequence.generation, std::move(chunk));
  return rollback_ms;
}

// Adds the token that was drawn from `row` to the sequence and its text. Returns why the generation ends, if it does.
std::optional<FinishReason> Committer::Append(const StepEntry& entry, int row) {
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
                                         engine_.Logits(entry.logits_row + row), speculator_.name(drafter)));
  sequence.tokens.push_back(drawn.token);
  if (stopped) return FinishReason::kStopString;
  const bool full = static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length;
  if (full || sequence.timings.generated_tokens == request.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

// Tells the drafters which rows of the entry are final: its committed tokens and the first `accepted` draft tokens.
void Committer::ReportToDrafters(const StepBatch& step, const StepEntry& entry, int added, int accepted) {
  const Sequence& sequence = *entry.sequence;
  const Pos first = step.batch().rows()[static_cast<size_t>(entry.first_row)].pos;
  speculator_.Commit(sequence.id, {sequence.tokens, added, {first, entry.rows + accepted, &engine_, entry.first_row}},
                     accepted);
}

double Committer::RollBack(Sequence& sequence, Pos length) {
  const TimePoint start = clock_.Now();
  const Pos kept = engine_.TruncateTo(sequence.id, length);
  const double ms = Milliseconds(clock_.Now() - start);
  sequence.timings.rollback_ms += ms;
  sequence.timings.replayed_tokens += length - kept;
  if (kept < length) speculator_.ObserveRestore(ms / 1000);
  return ms;
}

// The drafters that did something for the request in `seq`.
std::vector<DrafterStats> Committer::DraftersOf(SeqId seq) const {
  std::vector<DrafterStats> drafters = speculator_.stats(seq);
  std::erase_if(drafters, [](const DrafterStats& stats) { return stats.seconds == 0 && stats.proposed == 0; });
  return drafters;
}

void Committer::Finish(Sequence& sequence, FinishReason reason, Status error) {
  Chunk chunk;
  sequence.text.Release(/*last=*/true, &chunk);
  chunk.timings = sequence.timings;
  const bool complete =
      reason == FinishReason::kEndOfText || reason == FinishReason::kStopString || reason == FinishReason::kLength;
  speculator_.End(sequence.id, sequence.tokens, complete);
  stats_.longest = std::max<uint64_t>(stats_.longest, sequence.tokens.size());
  chunk.completion = Completion{reason,
                                sequence.text.matched(),
                                std::move(error),
                                sequence.timings,
                                sequence.sampler->seed(),
                                sequence.id,
                                DraftersOf(sequence.id),
                                speculator_.speed_up(sequence.id),
                                std::move(sequence.steps)};
  chunk.completion->truncated =
      reason == FinishReason::kLength && static_cast<Pos>(sequence.tokens.size()) >= engine_.info().sequence_length;
  sequence.steps.clear();
  CountFinished(*chunk.completion, &stats_);
  for (const AdapterScale& adapter : sequence.adapters) ++stats_.adapter_requests[static_cast<size_t>(adapter.id)];
  LogFinished(*chunk.completion);
  outbox_.Add(sequence.generation, std::move(chunk));
  slots_.End(sequence, clock_.Now());
}

}  // namespace outrider
