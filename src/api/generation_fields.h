// The fields that say how to generate, the same in all protocols: sampling, stop strings, seed, logit_bias, limits.
#pragma once

#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Sampling fields under llama.cpp's names (and OpenAI's where they are the same), stop strings, seed, logit_bias: sets
// `request->sampling`, `stop`, `ignore_eos`, `slot`, `reuse_prefix`, `time_limit`, `adapters` from the context's
// defaults and the body. A request without a seed gets a random one.
Status ReadGenerationFields(const Json& body, const ApiContext& context, GenerationRequest* request);

// What a protocol lets a client say about the length of an answer.
enum class MaxTokensLimits {
  kPositive,      // Responses, Anthropic
  kFromMinusOne,  // the others, where llama.cpp's clients write -1 for no limit, and 0 only puts the prompt into memory
};

// Sets request->max_tokens from the first of `names` that is present, else from the server's default.
Status ReadMaxTokens(const Json& body, const std::vector<const char*>& names, MaxTokensLimits limits,
                     const ApiContext& context, GenerationRequest* request);

}  // namespace outrider
