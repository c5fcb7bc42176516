// TokenReport: a token that the target drew, as the consumer of the request sees it: its text, log probabilities if
// they were asked for, and who drafted it.
#pragma once

#include <span>
#include <string_view>

#include "engine/tokenizer.h"
#include "sampling/filter.h"
#include "scheduler/generation.h"

namespace outrider {

// `candidates`: what the token was drawn from, best first; needed if the request asks for probabilities after filters.
// `logits`: of its row; needed if it asks for those of the model. Tokens that end the generation have no text.
GeneratedToken DescribeToken(const GenerationRequest& request, const Tokenizer& tokenizer, Token token,
                             std::span<const Candidate> candidates, std::span<const float> logits,
                             std::string_view drafter);

}  // namespace outrider
