// The prompt of POST /infill: what stands before and behind a gap in a file, and parts of other files, put together
// with the tokens by which models that were trained to fill gaps know these parts.
#pragma once

#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// "input_prefix", "input_suffix", "input_extra": [{"filename", "text"}, …] and "prompt" (the beginning of what fills
// the gap), as llama.cpp has them. kUnsupported if the model has no such tokens.
//
// The text nearest to the gap is kept if not everything fits: three quarters of a batch before it and one quarter
// behind it, as in llama.cpp; then as much of the end of input_extra as the context holds beside twice `max_tokens`.
Result<std::vector<Token>> InfillPrompt(const Json& body, const ApiContext& context, int max_tokens);

}  // namespace outrider
