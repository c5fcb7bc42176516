// Anthropic's messages beside ParseMessages (protocol.h): counting tokens without generating.
#pragma once

#include "api/protocol.h"

namespace outrider {

// POST /v1/messages/count_tokens: {"input_tokens": n}, of the prompt that /v1/messages would make from the same body.
// Conversations longer than the context are counted too: finding that out is what the endpoint is for.
Result<Json> CountMessageTokens(const Json& body, const ApiContext& context);

}  // namespace outrider
