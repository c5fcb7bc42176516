#include "api/part_writer.h"

#include <algorithm>
#include <utility>

namespace outrider {

bool CutOff(FinishReason reason) {
  return reason != FinishReason::kEndOfText && reason != FinishReason::kStopString;
}

std::string PartWriter::Append(const Chunk& chunk) {
  unparsed_ += chunk.text;
  timings_ = chunk.timings;
  if (!stream_ && !chunk.completion) return "";

  std::string events;
  if (!std::exchange(begun_, true)) events += Begin(chunk.timings);
  for (const PromptProgress& progress : chunk.progress) events += Progress(progress);
  for (const ChatDelta& delta : chat_.Feed(std::exchange(unparsed_, ""), chunk.completion.has_value())) {
    events += Apply(delta);
  }
  if (!chunk.completion) return events;

  completion_ = *chunk.completion;
  if (completion_.reason == FinishReason::kError) return events + ErrorEvent(completion_.error);
  if (parts_.empty()) events += OpenPart(AnswerPart::Kind::kText, {}, -1);
  parts_.back().cut_off = CutOff(completion_.reason);
  events += CloseLast();
  return events + End();
}

std::string PartWriter::Apply(const ChatDelta& delta) {
  using enum AnswerPart::Kind;
  if (delta.kind == ChatDelta::Kind::kToolCall) return OpenPart(kToolCall, delta.call, delta.tool_index);

  std::string events;
  auto part = parts_.end();
  if (delta.kind == ChatDelta::Kind::kToolArguments) {
    part = std::find_if(parts_.begin(), parts_.end(),
                        [&](const AnswerPart& p) { return p.tool_index == delta.tool_index; });
    if (part == parts_.end()) return "";
  } else {
    const AnswerPart::Kind kind = delta.kind == ChatDelta::Kind::kReasoning ? kReasoning : kText;
    if (parts_.empty() || parts_.back().kind != kind) events += OpenPart(kind, {}, -1);
    part = std::prev(parts_.end());
  }
  part->text += delta.text;
  return events + Grow(*part, delta.text);
}

std::string PartWriter::OpenPart(AnswerPart::Kind kind, const ToolCall& call, int tool_index) {
  std::string events = parts_.empty() ? "" : CloseLast();
  parts_.push_back(
      {.kind = kind, .id = "", .text = "", .call = call, .tool_index = tool_index, .index = parts_.size()});
  return events + Open(&parts_.back());
}

std::string PartWriter::CloseLast() {
  return Close(parts_.back());
}

}  // namespace outrider
