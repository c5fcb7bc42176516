// Log probabilities as the three protocols that report them write them.
#pragma once

#include <vector>

#include "base/json.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"

namespace outrider {

// JSON has no infinity: the log probability of what cannot happen is written as OpenAI writes it.
inline constexpr float kImpossibleLogprob = -9999.0f;
float FiniteLogprob(float logprob);

// A token's text for JSON, where bytes that are not whole characters become U+FFFD, and its exact bytes.
std::string TokenText(const std::string& piece);
Json TokenBytes(const std::string& piece);

// [{token, logprob, bytes, top_logprobs: [...]}]: the content of chat's `logprobs`.
Json ChatLogprobs(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer);

// {tokens, token_logprobs, top_logprobs, text_offset}: /v1/completions. `offset`, in characters, is where the first
// token's text begins, and is moved past the last one. `with_top`: whether alternatives were asked for.
Json LegacyLogprobs(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer, bool with_top,
                    size_t* offset);

// [{id, token, bytes, logprob, top_logprobs}]: llama.cpp's completion_probabilities; with `as_probabilities` prob and
// top_probs.
Json LlamaProbabilities(const std::vector<GeneratedToken>& tokens, const Tokenizer& tokenizer, bool as_probabilities);

}  // namespace outrider
