// SlotPool: the sequences (slots) of the engine's memory, busy and idle.
//
// A finished sequence keeps its memory. A new request gets the idle sequence of its owner that shares the longest
// prefix with its prompt, and continues from there; of the memory of other owners it uses nothing. What a request would
// displace is copied into the prompt cache, and restored from it when its conversation goes on. Idle sequences can be
// saved, restored and erased.
//
// Belongs to the stepping thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/engine.h"
#include "engine/media.h"
#include "scheduler/generation.h"
#include "scheduler/prompt_cache.h"
#include "scheduler/sequence.h"
#include "scheduler/stats.h"

namespace outrider {

class SlotPool {
 public:
  // `cache_bytes`: main memory for prompts beyond those of the slots; 0 = none.
  explicit SlotPool(Engine& engine, uint64_t cache_bytes = 0);

  std::vector<Sequence>& sequences() { return sequences_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }
  const PromptCache& cache() const { return cache_; }
  int busy() const;

  // Begins the request in the idle sequence with the most reusable tokens (among equals the least recently used one),
  // or in the slot that it asked for. Returns null, and leaves `request` unchanged, if there is none.
  Sequence* Begin(PendingRequest& request, TimePoint now);

  // The request in `sequence` is over; its tokens stay in memory.
  void End(Sequence& sequence, TimePoint now);

  // How many tokens a busy sequence may still generate before max_tokens or the end of the context.
  int TokensLeft(const Sequence& sequence) const;

  void ListStatus(std::vector<SlotStatus>* slots) const;

  // kNotFound if there is no such slot, kUnavailable while it is busy.
  Result<SavedSlot> Save(SeqId slot);
  Status Restore(SeqId slot, SavedSlot saved, const std::string& owner);
  Result<int> Erase(SeqId slot);  // tokens forgotten

 private:
  Result<Sequence*> Idle(SeqId slot);
  Pos Reusable(const Sequence& sequence, const GenerationRequest& request, const TextWithMedia& prompt) const;
  void KeepCopy(const Sequence& sequence, Pos kept);
  Pos RestoreCopy(SeqId slot, const SavedSlot& copy, const TextWithMedia& prompt);

  Engine& engine_;
  PromptCache cache_;
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
