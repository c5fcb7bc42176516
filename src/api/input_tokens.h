// How many tokens a conversation is, without generating: /v1/chat/completions/input_tokens, /v1/responses/input_tokens
// and Anthropic's /v1/messages/count_tokens. Also conversations that do not fit the context are counted.
#pragma once

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

Result<Json> ChatInputTokens(const Json& body, const ApiContext& context);
Result<Json> ResponseInputTokens(const Json& body, const ApiContext& context);
Result<Json> MessageInputTokens(const Json& body, const ApiContext& context);

}  // namespace outrider
