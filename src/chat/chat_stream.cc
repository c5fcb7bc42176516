#include "chat/chat_stream.h"

#include <algorithm>

#include "chat/random_id.h"

namespace outrider {
namespace {

// What `now` adds to `sent`; "" if it takes back what the reader has seen already, which nothing can undo.
std::string_view Added(const std::string& sent, const std::string& now) {
  return now.starts_with(sent) ? std::string_view(now).substr(sent.size()) : std::string_view();
}

size_t FirstMarker(std::string_view text, const std::vector<std::string>& markers) {
  size_t first = std::string_view::npos;
  for (const std::string& marker : markers) first = std::min(first, text.find(marker));
  return first;
}

// Bytes at the end of `text` that may be the beginning of a marker.
size_t BegunMarker(std::string_view text, const std::vector<std::string>& markers) {
  size_t longest = 0;
  for (const std::string& marker : markers) {
    for (size_t n = std::min(marker.size(), text.size()); n > longest; --n) {
      if (text.ends_with(std::string_view(marker).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace

ChatStream::ChatStream(std::shared_ptr<const ChatParser> parser)
    : parser_(std::move(parser)), markers_(parser_->markers()) {}

std::vector<ChatDelta> ChatStream::Feed(std::string_view text, bool last) {
  text_ += text;
  std::vector<ChatDelta> deltas;
  if (parser_->plain()) {
    Extend(ChatDelta::Kind::kContent, text, &deltas);
    return deltas;
  }
  if (!last) {
    if (run_ && ContinueRun(&deltas)) return deltas;
    if (!MayParse()) return deltas;
  }
  const ChatMessage now = Parse(text_, !last);
  AddNew(now, last, &deltas);
  if (!last) FindRun(now);
  return deltas;
}

bool ChatStream::MayParse() const {
  return parsed_bytes_ + text_.size() <= kMaxParsedShare * text_.size() + kFreeBytes;
}

ChatMessage ChatStream::Parse(const std::string& text, bool partial) {
  parsed_bytes_ += text.size();
  return parser_->Parse(text, partial);
}

void ChatStream::Extend(ChatDelta::Kind kind, std::string_view added, std::vector<ChatDelta>* deltas) {
  if (added.empty()) return;
  (kind == ChatDelta::Kind::kReasoning ? message_.reasoning : message_.content) += added;
  deltas->push_back({kind, std::string(added), 0, {}});
}

bool ChatStream::ContinueRun(std::vector<ChatDelta>* deltas) {
  const std::string_view rest = std::string_view(text_).substr(run_->end);
  const size_t marker = FirstMarker(rest, *markers_);
  const bool ends = marker != std::string_view::npos;
  const size_t safe = ends ? marker : rest.size() - BegunMarker(rest, *markers_);
  Extend(run_->kind, rest.substr(0, safe), deltas);
  run_->end += safe;
  if (ends) run_.reset();
  return !ends;
}

// Asks the parser whether an ordinary letter after the text would be added to the part of the message that grew last.
void ChatStream::FindRun(const ChatMessage& now) {
  run_.reset();
  const bool is_content = !now.content.empty();
  const std::string& part = is_content ? now.content : now.reasoning;
  const std::string& sent = is_content ? message_.content : message_.reasoning;
  if (!markers_ || part.empty() || part != sent || !MayParse()) return;
  const ChatMessage next = Parse(text_ + 'x', /*partial=*/true);
  const std::string& next_part = is_content ? next.content : next.reasoning;
  if (next_part.size() <= part.size() || next.tool_calls != now.tool_calls) return;
  if (is_content && next.reasoning != now.reasoning) return;
  if (!is_content && !next.content.empty()) return;
  // Between the part and the letter may be what the parser holds back as the possible beginning of a marker.
  const size_t held_back = next_part.size() - part.size() - 1;
  if (held_back > text_.size()) return;
  if (next_part == part + text_.substr(text_.size() - held_back) + 'x') {
    run_ = Run{is_content ? ChatDelta::Kind::kContent : ChatDelta::Kind::kReasoning, text_.size() - held_back};
  }
}

void ChatStream::AddNew(const ChatMessage& now, bool last, std::vector<ChatDelta>* deltas) {
  Extend(ChatDelta::Kind::kReasoning, Added(message_.reasoning, now.reasoning), deltas);
  Extend(ChatDelta::Kind::kContent, Added(message_.content, now.content), deltas);
  for (size_t i = 0; i < now.tool_calls.size(); ++i) {
    const ToolCall& call = now.tool_calls[i];
    // The name may still grow until the arguments begin. A call whose name never arrives is not sent.
    const bool name_complete = !call.arguments.empty() || i + 1 < now.tool_calls.size() || last;
    if (call.name.empty() || !name_complete) break;
    const int index = static_cast<int>(i);
    if (i == message_.tool_calls.size()) {
      const ToolCall header{call.id.empty() ? MakeId("call_") : call.id, call.name, ""};
      message_.tool_calls.push_back(header);
      deltas->push_back({ChatDelta::Kind::kToolCall, "", index, header});
    }
    std::string& sent = message_.tool_calls[i].arguments;
    const std::string_view added = Added(sent, call.arguments);
    if (added.empty()) continue;
    sent += added;
    deltas->push_back({ChatDelta::Kind::kToolArguments, std::string(added), index, {}});
  }
}

}  // namespace outrider
