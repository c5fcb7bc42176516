// SlotPool: the sequences of the engine's memory and what requests leave in them.
//
// A finished sequence keeps its memory. A new request gets the idle sequence that shares most with its prompt and goes
// on from there. Idle sequences can be saved, restored and erased.
//
// Belongs to the stepping thread.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/token.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"
#include "scheduler/sequence.h"
#include "scheduler/stats.h"

namespace outrider {

class SlotPool {
 public:
  SlotPool(Engine& engine, const Tokenizer& tokenizer);

  std::vector<Sequence>& sequences() { return sequences_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }
  int busy() const;

  // Begins the request in the idle sequence with the most to go on from, the least recently used of equals, or in the
  // one it asked for. Null, and nothing taken from `request`, if there is none.
  Sequence* Begin(PendingRequest& request, TimePoint now);

  // The request in `sequence` is over; what is in memory stays.
  void End(Sequence& sequence, TimePoint now);

  // Tokens until max_tokens or the context's end, of a sequence that is busy.
  int TokensLeft(const Sequence& sequence) const;

  void ListStatus(std::vector<SlotStatus>* slots) const;

  // kNotFound if there is no such slot, kUnavailable while it is busy.
  Result<SavedSlot> Save(SeqId slot);
  Status Restore(SeqId slot, SavedSlot saved);
  Result<int> Erase(SeqId slot);  // tokens forgotten

 private:
  Result<Sequence*> Idle(SeqId slot);
  Pos Reusable(const Sequence& sequence, const GenerationRequest& request) const;

  Engine& engine_;
  const Tokenizer& tokenizer_;
  std::vector<Sequence> sequences_;
};

}  // namespace outrider
