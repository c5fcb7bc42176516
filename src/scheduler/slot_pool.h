// SlotPool: the sequences (slots) of the engine's memory, busy and idle.
//
// A finished sequence keeps its memory. A new request gets the idle sequence of its owner that shares the longest
// prefix with its prompt, and continues from there; of the memory of other owners it uses nothing. Idle sequences can
// be saved, restored and erased.
//
// Belongs to the stepping thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/engine.h"
#include "scheduler/generation.h"
#include "scheduler/sequence.h"
#include "scheduler/stats.h"

namespace outrider {

class SlotPool {
 public:
  explicit SlotPool(Engine& engine);

  std::vector<Sequence>& sequences() { return sequences_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }
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
  Pos Reusable(const Sequence& sequence, const GenerationRequest& request) const;

  Engine& engine_;
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
