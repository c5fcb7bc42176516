// The memory of an answer that is sent whole.
#pragma once

#include "api/protocol.h"
#include "base/status.h"

namespace outrider {

// An answer that is not streamed is held until it is complete, with all alternatives of all tokens of all its choices.
// Where the request asks for more of them than kMaxWholeAlternatives (base/request_budget.h), this is kInvalidArgument;
// where it says nothing about the length of its answer, the answer is limited to what that allows.
Status LimitWholeAnswer(const ApiContext& context, ParsedRequest* request);

}  // namespace outrider
