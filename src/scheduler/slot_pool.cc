#include "scheduler/slot_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace outrider {

SlotPool::SlotPool(Engine& engine, uint64_t cache_bytes)
    : engine_(engine),
      cache_(cache_bytes, engine.info().rollback != Rollback::kDropCells),
      sequences_(static_cast<size_t>(engine.info().n_sequences)) {
  for (size_t i = 0; i < sequences_.size(); ++i) sequences_[i].id = static_cast<SeqId>(i);
}

int SlotPool::busy() const {
  return static_cast<int>(
      std::count_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return s.busy(); }));
}

// How many tokens of the prompt are in the memory of `sequence` and can be reused: none of another owner's, who could
// otherwise be asked, with guesses, what the prompt was; and none that were computed with other adapters. The last
// token of the prompt is always decoded, because the first token of the answer is drawn from its row.
Pos SlotPool::Reusable(const Sequence& sequence, const GenerationRequest& request, const TextWithMedia& prompt) const {
  if (!request.reuse_prefix || sequence.owner != request.owner || sequence.adapters != request.adapters) return 0;
  const size_t shared = std::min(SharedPrefix({sequence.tokens, sequence.media}, prompt), prompt.tokens.size() - 1);
  return engine_.TruncatedLength(sequence.id, static_cast<Pos>(shared));
}

Sequence* SlotPool::Begin(PendingRequest& pending, TimePoint now) {
  const GenerationRequest& request = pending.generation->request();
  std::vector<MediaPlace> media = PlacesOf(request.media);
  const TextWithMedia prompt(request.prompt, media);
  Sequence* best = nullptr;
  Pos best_prefix = 0;
  for (Sequence& sequence : sequences_) {
    if (sequence.busy() || (request.slot >= 0 && request.slot != sequence.id)) continue;
    const Pos prefix = Reusable(sequence, request, prompt);
    if (best == nullptr || prefix > best_prefix || (prefix == best_prefix && sequence.last_used < best->last_used)) {
      best = &sequence;
      best_prefix = prefix;
    }
  }
  if (best == nullptr) return nullptr;

  // As in llama-server, a request that names its slot gets what is in that slot: nothing if it was erased.
  const auto find_copy = [&] {
    const bool any_slot = request.reuse_prefix && request.slot < 0;
    return any_slot ? cache_.Find(request.owner, request.adapters, prompt, best_prefix) : nullptr;
  };
  KeepCopy(*best, find_copy() == nullptr ? best_prefix : 0);
  const SavedSlot* copy = find_copy();  // what was kept may have displaced it
  const Pos kept = copy == nullptr ? engine_.TruncateTo(best->id, best_prefix) : RestoreCopy(best->id, *copy, prompt);
  best->tokens = request.prompt;
  best->media = std::move(media);
  best->adapters = request.adapters;
  best->owner = request.owner;
  best->prompt_length = static_cast<Pos>(request.prompt.size());
  best->text = TextStream(request.stop);
  best->submitted = pending.submitted;
  best->admitted = now;
  best->last_step = 0;
  best->failed_steps = 0;
  best->suspect = false;
  best->expensive_draw = false;
  best->timings = {};
  best->timings.cached_tokens = kept;
  best->timings.prompt_tokens = best->prompt_length - kept;
  best->timings.queue_ms = Milliseconds(best->admitted - best->submitted);
  best->generation = std::move(pending.generation);
  best->sampler = std::move(pending.sampler);
  return best;
}

// Copies what an idle sequence holds before a request takes its place, of which it keeps `kept` tokens: if more is lost
// than is kept, and no copy has it already.
void SlotPool::KeepCopy(const Sequence& sequence, Pos kept) {
  const size_t length = sequence.tokens.size();
  if (!cache_.enabled() || length == 0 || 2 * static_cast<size_t>(kept) >= length) return;
  if (cache_.Holds(sequence.owner, sequence.adapters, {sequence.tokens, sequence.media})) return;
  auto state = engine_.SaveSequence(sequence.id);
  if (!state.ok()) return;
  cache_.Keep(sequence.owner, {sequence.tokens, std::move(*state), sequence.adapters, sequence.media});
}

// How many tokens of the prompt are then in memory.
Pos SlotPool::RestoreCopy(SeqId slot, const SavedSlot& copy, const TextWithMedia& prompt) {
  const size_t shared = std::min(SharedPrefix({copy.tokens, copy.media}, prompt), prompt.tokens.size() - 1);
  const Status restored = engine_.RestoreSequence(slot, copy.state, static_cast<Pos>(copy.tokens.size()));
  return engine_.TruncateTo(slot, restored.ok() ? static_cast<Pos>(shared) : 0);
}

void SlotPool::End(Sequence& sequence, TimePoint now) {
  sequence.generation.reset();
  sequence.sampler.reset();
  const Pos length = engine_.Length(sequence.id);
  sequence.tokens.resize(static_cast<size_t>(length));
  std::erase_if(sequence.media, [length](const MediaPlace& place) { return place.begin >= length; });
  sequence.last_used = now;
}

int SlotPool::TokensLeft(const Sequence& sequence) const {
  const int room = engine_.info().sequence_length - static_cast<Pos>(sequence.tokens.size());
  const int limit = sequence.generation->request().max_tokens;
  return limit < 0 ? room : std::min(room, limit - sequence.timings.generated_tokens);
}

void SlotPool::ListStatus(std::vector<SlotStatus>* slots) const {
  slots->clear();
  for (const Sequence& sequence : sequences_) {
    slots->push_back({sequence.id, sequence.busy(), engine_.Length(sequence.id), sequence.prompt_length,
                      sequence.timings.generated_tokens, sequence.busy() ? TokensLeft(sequence) : -1, sequence.owner});
  }
}

Result<Sequence*> SlotPool::Idle(SeqId slot) {
  if (slot < 0 || slot >= static_cast<SeqId>(sequences_.size())) {
    return NotFound(fmt::format("slot {} does not exist; there are {}", slot, sequences_.size()));
  }
  Sequence& sequence = sequences_[static_cast<size_t>(slot)];
  if (sequence.busy()) return Unavailable(fmt::format("slot {} is busy", slot));
  return &sequence;
}

Result<SavedSlot> SlotPool::Save(SeqId slot) {
  auto sequence = Idle(slot);
  if (!sequence.ok()) return sequence.status();
  if (!(*sequence)->media.empty()) {
    return Unsupported(fmt::format("slot {} has read a picture or a sound, which a slot file cannot name", slot));
  }
  auto state = engine_.SaveSequence(slot);
  if (!state.ok()) return state.status();
  return SavedSlot{(*sequence)->tokens, std::move(*state), (*sequence)->adapters};
}

Status SlotPool::Restore(SeqId slot, SavedSlot saved, const std::string& owner) {
  auto sequence = Idle(slot);
  if (!sequence.ok()) return sequence.status();
  Status result = engine_.RestoreSequence(slot, saved.state, static_cast<Pos>(saved.tokens.size()));
  (*sequence)->media.clear();
  (*sequence)->tokens = result.ok() ? std::move(saved.tokens) : std::vector<Token>();
  (*sequence)->owner = owner;
  (*sequence)->adapters = std::move(saved.adapters);
  if (!result.ok()) engine_.TruncateTo(slot, 0);
  return result;
}

Result<int> SlotPool::Erase(SeqId slot) {
  auto sequence = Idle(slot);
  if (!sequence.ok()) return sequence.status();
  const auto erased = static_cast<int>((*sequence)->tokens.size());
  engine_.TruncateTo(slot, 0);
  (*sequence)->tokens.clear();
  (*sequence)->media.clear();
  return erased;
}

}  // namespace outrider
