// The last step of reading a request: from what the client said to what the scheduler takes, a prompt of tokens that
// fits the context, with the grammar and stop strings of the answer. One way for conversations and one for plain text;
// every protocol ends in one of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Applies the template, tokenises, and fills prompt, grammar, stop strings; checks that the prompt fits the context.
// The parser for the answer comes back. The common path of all chat protocols.
Result<std::shared_ptr<const ChatParser>> PrepareChat(const ChatInput& input, const ApiContext& context,
                                                      GenerationRequest* request);

// Reads what the protocols without a chat template have in common: generation fields, output format, and "prompt",
// which is a string, token ids, a mix of both in a list, {"prompt_string": …}, or a list of prompts. A list that has
// token ids of its own is one prompt. A copy of `request` for each prompt comes back.
Result<std::vector<GenerationRequest>> PrepareTexts(const Json& body, const ApiContext& context,
                                                    GenerationRequest request);

// The same for endpoints that make a single prompt themselves: does not look at "prompt".
Status PrepareFormat(const Json& body, const ApiContext& context, GenerationRequest* request);

// Fills prompt and media with a text and the files whose markers it has; checks that they fit the context. Nothing is
// computed yet.
Status PreparePrompt(const std::string& text, bool add_bos, const std::vector<Attachment>& attachments,
                     const ApiContext& context, const char* field, GenerationRequest* request);

// kContextExceeded if a text of `bytes` behind `tokens` cannot fit, which is known before it is tokenised.
Status CheckTextFits(size_t tokens, size_t bytes, const ApiContext& context, const char* field);

// kContextExceeded if the prompt leaves no room for an answer, kInvalidArgument if it is empty.
Status CheckPromptFits(size_t prompt_tokens, const ApiContext& context, const char* field);

}  // namespace outrider
