#include "engine/media.h"

#include <algorithm>

#include "base/hash.h"

namespace outrider {

Status ComputeMedia(std::span<const MediaSpan> media, const StillWanted& wanted) {
  for (const MediaSpan& span : media) {
    if (const Status status = span.rows->Compute(wanted); !status.ok()) {
      return Status(status.code(), status.message(), span.field);
    }
  }
  return {};
}

Result<std::shared_ptr<const void>> MediaMemory::Hold(const std::string& owner, uint64_t bytes) {
  const std::lock_guard lock(held_->mutex);
  const auto found = held_->by_owner.find(owner);
  const uint64_t mine = found == held_->by_owner.end() ? 0 : found->second;
  const bool full = held_->all > 0 && held_->all + bytes > max_bytes_;
  const bool unfair = mine > 0 && mine + bytes > max_bytes_ / 2;
  if (full || unfair) {
    return Status(StatusCode::kResourceExhausted,
                  "too many requests with pictures run or wait: their memory is used up; try again later");
  }
  held_->all += bytes;
  held_->by_owner[owner] += bytes;
  return std::shared_ptr<const void>(nullptr, [held = held_, owner, bytes](const void*) {
    const std::lock_guard drop(held->mutex);
    held->all -= bytes;
    const auto entry = held->by_owner.find(owner);
    entry->second -= bytes;
    if (entry->second == 0) held->by_owner.erase(entry);
  });
}

std::vector<MediaPlace> PlacesOf(std::span<const MediaSpan> media) {
  std::vector<MediaPlace> places;
  for (const MediaSpan& span : media) places.push_back({span.begin, span.end(), span.rows->id()});
  return places;
}

size_t SharedPrefix(const TextWithMedia& a, const TextWithMedia& b) {
  size_t shared = CommonPrefix(a.tokens, b.tokens);
  const auto [left, right] = std::mismatch(a.media.begin(), a.media.end(), b.media.begin(), b.media.end());
  if (left != a.media.end()) shared = std::min(shared, static_cast<size_t>(left->begin));
  if (right != b.media.end()) shared = std::min(shared, static_cast<size_t>(right->begin));
  return shared;
}

std::vector<Token> TextTokens(std::span<const Token> prompt, std::span<const MediaSpan> media) {
  std::vector<Token> text;
  Pos at = 0;
  for (const MediaSpan& span : media) {
    text.insert(text.end(), prompt.begin() + at, prompt.begin() + span.begin);
    at = span.end();
  }
  text.insert(text.end(), prompt.begin() + at, prompt.end());
  return text;
}

Token StandIn(const MediaId& id, Pos row, int n_vocab) {
  Fnv1a hash;
  hash.AddValue(id);
  hash.AddValue(row);
  return static_cast<Token>((hash.hash() >> 16) % static_cast<uint64_t>(n_vocab));
}

}  // namespace outrider
