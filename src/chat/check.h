// Refuses conversations, tools and schemas that llama-common would abort, overflow its stack, or not come back on. What
// passes may still be refused by the template; that arrives as an exception and is dealt with where it is called.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

// kInvalidArgument naming the message, tool or argument that is wrong ("messages[3].content").
Status CheckChatInput(const ChatInput& input);

// `field` is put into the error.
Status CheckSchema(const Json& schema, const std::string& field);

}  // namespace outrider
