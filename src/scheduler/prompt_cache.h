// PromptCache: copies, in main memory, of what slots had computed when another request took their place (llama.cpp's
// --cache-ram). A conversation that comes back goes on from its copy, to the bit as if it had kept its slot.
//
// Copies belong to the owner of the requests that made them, and no other owner's request sees them; nor does a request
// with other adapters than those that a copy was computed with. base/fair_cache.h says whose copies are dropped when
// there is no room.
//
// Belongs to the stepping thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/adapter_set.h"
#include "base/fair_cache.h"
#include "base/token.h"
#include "engine/media.h"
#include "scheduler/stats.h"

namespace outrider {

class PromptCache {
 public:
  // `whole_only`: a copy cannot be cut, because it holds a running state, so it helps only prompts that begin with all
  // of its tokens.
  PromptCache(uint64_t max_bytes, bool whole_only) : copies_(max_bytes), whole_only_(whole_only) {}

  bool enabled() const { return copies_.max_bytes() > 0; }
  uint64_t bytes() const { return copies_.bytes(); }
  size_t copies() const { return copies_.entries().size(); }

  // The copy that saves the most tokens of `prompt`, if these are more than `already` and worth restoring the copy;
  // else null. It counts as used now, and stays valid until the next Keep.
  const SavedSlot* Find(const std::string& owner, const AdapterSet& adapters, const TextWithMedia& prompt, Pos already);

  // Whether a copy is as good as one of `text`. It counts as used now.
  bool Holds(const std::string& owner, const AdapterSet& adapters, const TextWithMedia& text);

  // Keeps a copy and drops those that it makes superfluous. One that is larger than the limit is not kept.
  void Keep(const std::string& owner, SavedSlot saved);

 private:
  Pos Usable(const SavedSlot& copy, const TextWithMedia& prompt) const;
  bool Replaces(const SavedSlot& copy, const TextWithMedia& text) const;

  FairCache<SavedSlot> copies_;
  const bool whole_only_;
};

}  // namespace outrider
