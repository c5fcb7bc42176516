#include "chat/chat_template.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

// What `now` adds to `sent`; "" if it takes back what the reader has seen already, which nothing can undo.
std::string Added(const std::string& sent, const std::string& now) {
  return now.compare(0, sent.size(), sent) == 0 ? now.substr(sent.size()) : "";
}

void Extend(ChatDelta::Kind kind, const std::string& now, std::string* sent, std::vector<ChatDelta>* deltas) {
  std::string added = Added(*sent, now);
  if (added.empty()) return;
  *sent += added;
  deltas->push_back({kind, std::move(added), 0, {}});
}

}  // namespace

ChatStream::ChatStream(std::shared_ptr<const ChatParser> parser) : parser_(std::move(parser)) {}

std::vector<ChatDelta> ChatStream::Feed(std::string_view text, bool last) {
  text_ += text;
  std::vector<ChatDelta> deltas;
  if (parser_->plain()) {
    message_.content += text;
    if (!text.empty()) deltas.push_back({ChatDelta::Kind::kContent, std::string(text), 0, {}});
    return deltas;
  }
  const ChatMessage now = parser_->Parse(text_, !last);
  Extend(ChatDelta::Kind::kReasoning, now.reasoning, &message_.reasoning, &deltas);
  Extend(ChatDelta::Kind::kContent, now.content, &message_.content, &deltas);
  for (size_t i = 0; i < now.tool_calls.size(); ++i) {
    const ToolCall& call = now.tool_calls[i];
    // A name may still grow until its arguments begin; one that never came makes no call.
    const bool name_complete = !call.arguments.empty() || i + 1 < now.tool_calls.size() || last;
    if (call.name.empty() || !name_complete) break;
    const int index = static_cast<int>(i);
    if (i == message_.tool_calls.size()) {
      const ToolCall header{call.id.empty() ? MakeId("call_") : call.id, call.name, ""};
      message_.tool_calls.push_back(header);
      deltas.push_back({ChatDelta::Kind::kToolCall, "", index, header});
    }
    std::string& sent = message_.tool_calls[i].arguments;
    std::string added = Added(sent, call.arguments);
    if (added.empty()) continue;
    sent += added;
    deltas.push_back({ChatDelta::Kind::kToolArguments, std::move(added), index, {}});
  }
  return deltas;
}

}  // namespace outrider
