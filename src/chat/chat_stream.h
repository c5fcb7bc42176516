// ChatStream: follows one growing answer. Text goes in as it is generated; what is new in the message comes out.
//
// A parser only takes a whole answer, and parsing it again for each piece would take quadratic time. Two rules avoid
// that. First, while plain text is running, pieces are passed on without parsing, until one of the strings appears that
// may end such a text (ChatParser::markers). Second, everywhere else (tool calls, answers bound to a schema, parsers
// without markers) the answer is parsed again for each piece while it is short, and later only when it has grown by a
// share of its length. So the number of bytes that are parsed over an answer is at most kMaxParsedShare times its
// length (and kFreeBytes), and what waits to be parsed is a small share of it. The last piece is always parsed, so the
// final message is that of the whole text.
//
// Belongs to one request; not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"

namespace outrider {

// One step of a growing message.
struct ChatDelta {
  enum class Kind { kReasoning, kContent, kToolCall, kToolArguments } kind;
  std::string text;    // for kReasoning, kContent, kToolArguments: what is new
  int tool_index = 0;  // for kToolCall, kToolArguments
  ToolCall call;       // for kToolCall: id and name; arguments follow as kToolArguments
};

class ChatStream {
 public:
  explicit ChatStream(std::shared_ptr<const ChatParser> parser);

  // `last`: the text is complete now. Returns what is new; concatenated, that is the message.
  std::vector<ChatDelta> Feed(std::string_view text, bool last);

  const ChatMessage& message() const { return message_; }  // the sum of what was returned
  const std::string& text() const { return text_; }        // all that was fed

  // Bytes parsed per byte of the answer. Twice as many would halve the delay of arguments and schema-bound answers.
  static constexpr size_t kMaxParsedShare = 64;
  static constexpr size_t kFreeBytes = 64 << 10;  // besides: a short answer is parsed for each piece

 private:
  // Running text: what is added to the text is added to this part of the message.
  struct Run {
    ChatDelta::Kind kind;  // kReasoning or kContent
    size_t end;            // bytes of the text that are in the message, or were consumed before it
  };

  bool MayParse() const;
  ChatMessage Parse(const std::string& text, bool partial);
  void Extend(ChatDelta::Kind kind, std::string_view added, std::vector<ChatDelta>* deltas);
  bool ContinueRun(std::vector<ChatDelta>* deltas);  // false if a marker ended the run
  void FindRun(const ChatMessage& now);
  void AddNew(const ChatMessage& now, bool last, std::vector<ChatDelta>* deltas);

  const std::shared_ptr<const ChatParser> parser_;
  const std::optional<std::vector<std::string>> markers_;
  std::string text_;
  ChatMessage message_;  // the sum of the deltas, so a call keeps the id it was announced with
  std::optional<Run> run_;
  size_t parsed_bytes_ = 0;
};

}  // namespace outrider
