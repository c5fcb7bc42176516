// Tools for models whose chat template has never heard of them: they are described in the system message, and calls and
// results in the history become text, all in the Hermes notation that many models have seen:
//
//   <tool_call>
//   {"name": "get_weather", "arguments": {"city": "Rome"}}
//   </tool_call>
//
// Grammar and parser for the answer come from kToolTemplate, which has the same notation; only the prompt's text is the
// model's own.
#pragma once

#include "base/json.h"

namespace outrider {

extern const char* const kToolTemplate;  // Jinja

// `messages` without tool_calls and without messages of role tool. `tools` may be empty. Both have passed
// CheckChatInput.
Json WriteToolsAsText(const Json& messages, const Json& tools);

// GBNF of one call, or of one or more if `parallel`, from the opening tag to the closing one. Small models that may go
// on writing do go on, so there is no way around the call. Throws what llama-common throws.
std::string ToolCallGrammar(const Json& tools, bool parallel);

inline constexpr const char* kToolCallTrigger = "<tool_call>";  // where the grammar begins

}  // namespace outrider
