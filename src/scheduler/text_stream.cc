#include "scheduler/text_stream.h"

#include <algorithm>
#include <string_view>

#include "base/utf8.h"

namespace outrider {

bool TextStream::Append(GeneratedToken token) {
  const size_t before = pending_.size();
  pending_ += token.piece;
  const size_t end = sent_ + pending_.size();
  tokens_.push_back({end, std::move(token)});

  size_t first = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    // A match must end within the new piece; others would have been found before.
    const size_t from = before >= stop.size() ? before - stop.size() + 1 : 0;
    const size_t at = pending_.find(stop, from);
    if (at < first) {
      first = at;
      matched_ = stop;
    }
  }
  if (first == std::string::npos) return false;
  pending_.resize(first);
  // A token that begins before the stop string is kept, although the end of its text is removed.
  const auto starts_after = [&](const PendingToken& t) { return t.end - t.token.piece.size() >= sent_ + first; };
  tokens_.erase(std::find_if(tokens_.begin(), tokens_.end(), starts_after), tokens_.end());
  return true;
}

size_t TextStream::HeldBack() const {
  size_t held = IncompleteUtf8Tail(pending_);
  for (const std::string& stop : stop_strings_) {
    for (size_t length = std::min(stop.size() - 1, pending_.size()); length > held; --length) {
      if (std::string_view(pending_).ends_with(std::string_view(stop).substr(0, length))) held = length;
    }
  }
  return held;
}

void TextStream::Release(bool last, Chunk* chunk) {
  // Text that is sent must end with a whole character. A stop string may begin inside a character; then the first bytes
  // of that character must not be sent.
  size_t ready = last ? pending_.size() : pending_.size() - HeldBack();
  ready -= IncompleteUtf8Tail(std::string_view(pending_).substr(0, ready));
  chunk->text += ReplaceInvalidUtf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  sent_ += ready;
  while (!tokens_.empty() && (last || tokens_.front().end <= sent_)) {
    chunk->tokens.push_back(std::move(tokens_.front().token));
    tokens_.pop_front();
  }
}

}  // namespace outrider
