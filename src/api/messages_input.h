// Anthropic's conversation (system, messages, tools, tool_choice, output_config) as a ChatInput. Thinking blocks of
// earlier turns become reasoning_content, which templates show or leave out. Documents are refused.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

Result<ChatInput> ReadMessagesInput(const Json& body);

}  // namespace outrider
