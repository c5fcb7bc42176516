#include "chat/llama_chat_parser.h"

namespace outrider {
namespace {

ChatMessage FromCommon(common_chat_msg parsed) {
  ChatMessage message;
  message.content = parsed.content_parts.empty() ? std::move(parsed.content) : parsed.render_content("");
  message.reasoning = std::move(parsed.reasoning_content);
  for (common_chat_tool_call& call : parsed.tool_calls) {
    message.tool_calls.push_back({std::move(call.id), std::move(call.name), std::move(call.arguments)});
  }
  return message;
}

void DropPrefix(const std::string& prefix, std::string* text) {
  if (text->compare(0, prefix.size(), prefix) == 0) text->erase(0, prefix.size());
}

}  // namespace

LlamaChatParser::LlamaChatParser(const common_chat_params& params, bool structured) : params_(params) {
  params_.reasoning_format = COMMON_REASONING_FORMAT_AUTO;
  params_.parse_tool_calls = structured;
  if (!params.parser.empty()) params_.parser.load(params.parser);
  try {
    prefill_ = FromCommon(common_chat_parse("", /*is_partial=*/true, params_));
  } catch (const std::exception&) {
    prefill_ = {};  // nothing to recognise in an empty answer
  }
  plain_ = IsPlain(params, structured);
}

ChatMessage LlamaChatParser::Parse(const std::string& text, bool partial) const {
  ChatMessage message;
  if (!plain_) {
    try {
      return ParseOrThrow(text, partial);
    } catch (const std::exception&) {
      // Falls through: the model did not keep to its format.
    }
  }
  message.content = text;
  return message;
}

ChatMessage LlamaChatParser::ParseOrThrow(const std::string& text, bool partial) const {
  ChatMessage message = FromCommon(common_chat_parse(text, partial, params_));
  DropPrefix(prefill_.content, &message.content);
  DropPrefix(prefill_.reasoning, &message.reasoning);
  return message;
}

bool LlamaChatParser::IsPlain(const common_chat_params& params, bool structured) const {
  if (structured || params.supports_thinking || !params.thinking_start_tag.empty()) return false;
  // Some formats wrap or trim even plain content; a text with everything they might touch shows it.
  const std::string probe = " \n<a>x</a> {\"b\": [1]} ```c``` \n";
  try {
    return ParseOrThrow(probe, /*partial=*/false) == ChatMessage{probe, "", {}};
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace outrider
