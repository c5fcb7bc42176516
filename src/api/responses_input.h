// The conversation of an OpenAI response (instructions, input, tools, tool_choice, text.format) as a ChatInput.
// Reasoning items of earlier turns become reasoning_content, which templates show or leave out. With
// previous_response_id the conversation goes on from an earlier response, if the server remembers responses.
#pragma once

#include <string>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

struct ResponsesInput {
  ChatInput chat;
  Json settings = Json::object();  // fields of the request that the answer repeats, as they were understood
  bool store = false;              // the response is to be remembered, with
  Json conversation;               // the messages without the instructions; their files are those of `chat`
};

// `owner`: whose request it is.
Result<ResponsesInput> ReadResponsesInput(const Json& body, const std::string& owner, const ApiContext& context);

}  // namespace outrider
