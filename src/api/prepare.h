// The last step of reading a request: from what the client said to what the scheduler takes, a prompt of tokens that
// fits the context, with the grammar and stop strings of the answer. One way for conversations and one for plain text;
// every protocol ends in one of them.
#pragma once

#include <memory>
#include <string>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Applies the template, tokenises, and fills prompt, grammar, stop strings; checks that the prompt fits the context.
// The parser for the answer comes back. The common path of all chat protocols.
Result<std::shared_ptr<const ChatParser>> PrepareChat(const ChatInput& input, const ApiContext& context,
                                                      GenerationRequest* request);

// Reads what the protocols without a chat template have in common: generation fields, output format, and "prompt",
// which is a string, a list with one string, token ids, or a mix of both.
Status PrepareText(const Json& body, const ApiContext& context, GenerationRequest* request);

// kInvalidArgument if a text of so many bytes cannot fit, which is known before it is tokenised: that takes long for
// long texts.
Status CheckTextFits(size_t bytes, size_t max_tokens, const ApiContext& context, const std::string& field);

// kInvalidArgument if the prompt leaves no room for an answer.
Status CheckPromptFits(size_t prompt_tokens, const ApiContext& context, const char* field);

}  // namespace outrider
