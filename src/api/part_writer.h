// An answer as a sequence of parts: reasoning, text, tool calls, each opened, grown and closed before the next one
// begins. OpenAI's responses call them output items, Anthropic's messages call them content blocks; a protocol says how
// each of these steps is written and PartWriter keeps the order.
//
// Streams and whole answers are built from the same parts, so they agree; only text that comes after a tool call stands
// before it in a whole answer. An answer has at least one part: the text, even if empty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/protocol.h"
#include "chat/chat_stream.h"

namespace outrider {

struct AnswerPart {
  enum class Kind { kReasoning, kText, kToolCall } kind;
  std::string id;        // made by the protocol when the part is opened
  std::string text;      // so far; a tool call's arguments
  ToolCall call;         // id and name of a tool call
  int tool_index = -1;   // of a tool call, counted over the answer
  size_t index = 0;      // among the parts
  bool cut_off = false;  // the answer ended before the part did
};

class PartWriter : public ResponseWriter {
 public:
  // Without `stream`, nothing is parsed before the answer is complete.
  PartWriter(std::shared_ptr<const ChatParser> parser, bool stream) : chat_(std::move(parser)), stream_(stream) {}

  std::string Append(const Chunk& chunk) final;

 protected:
  // Each returns the events that tell of the step.
  virtual std::string Begin(const GenerationTimings& timings) = 0;
  virtual std::string Progress(const PromptProgress&) { return ""; }
  virtual std::string Open(AnswerPart* part) = 0;  // sets part->id
  virtual std::string Grow(const AnswerPart& part, const std::string& text) = 0;
  virtual std::string Close(const AnswerPart& part) = 0;
  virtual std::string End() = 0;

  const std::vector<AnswerPart>& parts() const { return parts_; }
  const Completion& completion() const { return completion_; }    // valid from End on
  const GenerationTimings& timings() const { return timings_; }   // so far
  const ChatMessage& message() const { return chat_.message(); }  // so far
  bool HasToolCalls() const { return !message().tool_calls.empty(); }

 private:
  std::string Apply(const ChatDelta& delta);
  std::string OpenPart(AnswerPart::Kind kind, const ToolCall& call, int tool_index);
  std::string CloseLast();

  ChatStream chat_;
  const bool stream_;
  bool begun_ = false;
  std::string unparsed_;
  std::vector<AnswerPart> parts_;
  Completion completion_;
  GenerationTimings timings_;
};

// True if the answer was ended from outside rather than by the model or a stop string.
bool CutOff(FinishReason reason);

}  // namespace outrider
