// TokenReport: a token that the target drew, as the consumer of the request sees it: its text, log probabilities if
// they were asked for, and who drafted it. Likewise a step, with the tokens that were drafted and rejected.
#pragma once

#include <span>
#include <string_view>

#include "engine/tokenizer.h"
#include "sampling/filter.h"
#include "scheduler/generation.h"
#include "spec/draft.h"

namespace outrider {

// `candidates`: what the token was drawn from, best first; needed if the request asks for probabilities after filters.
// `logits`: of its row; needed if it asks for those of the model. Not for a token that ends the answer
// (DrawnToken::ends): it is no part of the text.
GeneratedToken DescribeToken(const GenerationRequest& request, const Tokenizer& tokenizer, Token token,
                             std::span<const Candidate> candidates, std::span<const float> logits,
                             std::string_view drafter);

// A step of a request that asked for provenance. `drafter`: the name of that of the first draft token.
DraftedStep DescribeStep(const GenerationRequest& request, const Tokenizer& tokenizer,
                         std::span<const DraftToken> draft, int accepted, std::string_view drafter, double ms);

}  // namespace outrider
