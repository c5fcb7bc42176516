// What a request may say about the model's reasoning, in the fields of llama.cpp: which part of the answer it goes to,
// and how long it may be. The same for all protocols that have conversations.
#pragma once

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

// The values of reasoning_format.
inline constexpr const char* kReasoningFormats[] = {"auto", "none", "deepseek", "deepseek-legacy"};

// Reads reasoning_format, reasoning_budget_tokens (or thinking_budget_tokens) and reasoning_budget_message. What the
// request does not say is as the server was told, unless `input` says it already.
Status ReadReasoningFields(const Json& body, const ApiContext& context, ChatInput* input);

}  // namespace outrider
