// The conversation of an OpenAI chat completion (messages, tools, tool_choice, response_format, …) as a ChatInput; also
// what /apply-template takes. Tools and schemas are read here; messages are checked when the template is applied.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

Result<ChatInput> ReadChatInput(const Json& body);

// OpenAI's reasoning effort as the variables that templates know; "" leaves it to them.
void SetReasoningEffort(const std::string& effort, ChatInput* input);

}  // namespace outrider
