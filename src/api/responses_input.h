// The conversation of an OpenAI response (instructions, input, tools, tool_choice, text.format) as a ChatInput.
// Reasoning items of earlier turns become reasoning_content, which templates show or leave out. What needs state of
// earlier requests is refused.
#pragma once

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

struct ResponsesInput {
  ChatInput chat;
  Json settings = Json::object();  // fields of the request that the answer repeats, as they were understood
};

Result<ResponsesInput> ReadResponsesInput(const Json& body);

}  // namespace outrider
