#include "scheduler/family.h"

#include <algorithm>

namespace outrider {
namespace {

// With other adapters the prompt's memory is another one.
bool IsMember(const Sequence& sequence, const GenerationRequest& request) {
  return request.family != 0 && sequence.busy() && sequence.generation->request().family == request.family &&
         sequence.adapters == request.adapters;
}

}  // namespace

bool FamilyIsReading(std::span<const Sequence> sequences, const GenerationRequest& request) {
  return request.reuse_prefix && std::any_of(sequences.begin(), sequences.end(), [&](const Sequence& sequence) {
           return IsMember(sequence, request) && !sequence.generating();
         });
}

void ShareFamilyPrompt(std::span<const Sequence> sequences, Engine& engine, Sequence* sequence) {
  const GenerationRequest& request = sequence->generation->request();
  const Pos wanted = sequence->prompt_length - 1;  // the first token is drawn from the row of the last one
  if (!request.reuse_prefix || engine.Length(sequence->id) >= wanted) return;
  for (const Sequence& other : sequences) {
    if (other.id == sequence->id || !IsMember(other, request)) continue;
    const Pos length = engine.Length(other.id);
    if (!other.generating() || length < wanted) continue;
    const Result<std::vector<uint8_t>> state = engine.SaveSequence(other.id);
    if (!state.ok()) return;
    const bool copied = engine.RestoreSequence(sequence->id, *state, length).ok();
    const Pos kept = engine.TruncateTo(sequence->id, copied ? wanted : 0);
    sequence->timings.cached_tokens = kept;
    sequence->timings.prompt_tokens = sequence->prompt_length - kept;
    return;
  }
}

}  // namespace outrider
