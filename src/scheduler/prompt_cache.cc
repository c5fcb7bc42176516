#include "scheduler/prompt_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace outrider {
namespace {

// Restoring copies all of a state, also what is then cut off. Computing a token takes many times as long as copying
// one, but not arbitrarily many times.
constexpr size_t kMinGain = 4;  // 1 / the least part of a copy that must be of use

}  // namespace

// How many tokens of the prompt the copy saves. The last one is always decoded: the answer is drawn from its row.
Pos PromptCache::Usable(const SavedSlot& copy, const TextWithMedia& prompt) const {
  if (prompt.tokens.empty()) return 0;
  const size_t shared = std::min(SharedPrefix({copy.tokens, copy.media}, prompt), prompt.tokens.size() - 1);
  return whole_only_ && shared < copy.tokens.size() ? 0 : static_cast<Pos>(shared);
}

// Whether `copy` can do all that one of `text` could. A running state cannot be cut, so there a longer one cannot.
bool PromptCache::Replaces(const SavedSlot& copy, const TextWithMedia& text) const {
  const size_t length = text.tokens.size();
  const bool long_enough = whole_only_ ? copy.tokens.size() == length : copy.tokens.size() >= length;
  return long_enough && SharedPrefix({copy.tokens, copy.media}, text) == length;
}

const SavedSlot* PromptCache::Find(const std::string& owner, const AdapterSet& adapters, const TextWithMedia& prompt,
                                   Pos already) {
  auto best = copies_.entries().end();
  Pos most = already;
  for (auto place = copies_.entries().begin(); place != copies_.entries().end(); ++place) {
    if (place->owner != owner || place->item.adapters != adapters) continue;
    const Pos usable = Usable(place->item, prompt);
    const size_t gain = static_cast<size_t>(std::max(0, usable - already));
    if (usable <= most || gain * kMinGain < place->item.tokens.size()) continue;
    best = place;
    most = usable;
  }
  if (best == copies_.entries().end()) return nullptr;
  copies_.MarkUsed(best);
  return &best->item;
}

bool PromptCache::Holds(const std::string& owner, const AdapterSet& adapters, const TextWithMedia& text) {
  auto& entries = copies_.entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.owner == owner && entry.item.adapters == adapters && Replaces(entry.item, text);
  });
  if (found == entries.end()) return false;
  copies_.MarkUsed(found);
  return true;
}

void PromptCache::Keep(const std::string& owner, SavedSlot saved) {
  for (auto place = copies_.entries().begin(); place != copies_.entries().end();) {
    const auto next = std::next(place);
    const bool alike = place->owner == owner && place->item.adapters == saved.adapters;
    if (alike && Replaces(saved, {place->item.tokens, place->item.media})) copies_.Drop(place);
    place = next;
  }
  const uint64_t bytes =
      saved.state.size() + saved.tokens.size() * sizeof(Token) + saved.media.size() * sizeof(MediaPlace);
  copies_.Add(owner, std::move(saved), bytes);
}

}  // namespace outrider
