// Tools for models whose chat template does not know tools: they are described in the system message, and calls and
// results in the history become text, all in the Hermes notation that many models have seen in training:
//
//   <tool_call>
//   {"name": "get_weather", "arguments": {"city": "Rome"}}
//   </tool_call>
//
// The parser of the answer is the one for kToolTemplate, which has the same notation. The prompt's text is made by the
// model's own template, and the grammar here.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "chat/chat_tool.h"

namespace outrider {

extern const char* const kToolTemplate;  // Jinja

// `messages` without tool_calls and without messages of role tool. `tools` may be empty. The messages have passed
// CheckChatInput.
Json WriteToolsAsText(const Json& messages, const std::vector<ChatTool>& tools);

// GBNF of one call, or of one or more if `parallel`, from the opening tag to the closing one. It allows no text after
// the last call, because small models would go on to write some. Throws what llama-common throws.
std::string ToolCallGrammar(const std::vector<ChatTool>& tools, bool parallel);

inline constexpr const char* kToolCallTrigger = "<tool_call>";  // where the grammar begins

}  // namespace outrider
