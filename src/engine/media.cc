#include "engine/media.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"

namespace outrider {

std::vector<MediaPlace> PlacesOf(std::span<const MediaSpan> media) {
  std::vector<MediaPlace> places;
  for (const MediaSpan& span : media) places.push_back({span.begin, span.end(), span.rows->id()});
  return places;
}

Pos CommonMediaPrefix(std::span<const MediaPlace> a, std::span<const MediaPlace> b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  Pos common = std::numeric_limits<Pos>::max();
  if (left != a.end()) common = std::min(common, left->begin);
  if (right != b.end()) common = std::min(common, right->begin);
  return common;
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
