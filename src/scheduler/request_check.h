// Checks of a request that are possible before it is queued.
#pragma once

#include "base/status.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"

namespace outrider {

// kInvalidArgument with the field that is wrong: a prompt that is empty, too long or not of this vocabulary, a slot
// that does not exist.
Status CheckRequest(const GenerationRequest& request, const EngineInfo& info, const Tokenizer& tokenizer);

}  // namespace outrider
