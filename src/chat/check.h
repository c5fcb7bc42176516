// Refuses conversations and schemas on which llama-common would abort, overflow its stack, or take very long. What
// passes may still be refused by the template; that arrives as an exception and is handled where the template is
// called.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

// kInvalidArgument naming the message or argument that is wrong ("messages[3].content"). The schemas and tools of a
// ChatInput were checked when they were read.
Status CheckChatInput(const ChatInput& input);

// The rest checks values from anywhere in a request; `field` is the place of the value, which errors name.

// How many tools a request may have; before any of them is read, since reading one takes time.
Status CheckToolCount(size_t tools);

// The size of a schema, not its meaning; called by JsonSchema::Read.
Status CheckSchema(const Json& schema, const std::string& field);

// Variables for templates ("chat_template_kwargs").
Status CheckTemplateArguments(const Json& arguments);

Status CheckFunctionName(const Json& name, const std::string& field);

}  // namespace outrider
