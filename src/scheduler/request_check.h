// Checks of a request that are possible before it is queued.
#pragma once

#include <string>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"

namespace outrider {

// The error for a prompt that does not leave room for an answer. Gateways and agents recognise "exceeds the available
// context size", which is llama.cpp's wording.
Status PromptTooLong(size_t prompt_tokens, Pos sequence_length, const std::string& field, bool at_least = false);

// kContextExceeded if the prompt is too long; kInvalidArgument with the field that is wrong: a prompt that is empty or
// not of this vocabulary, a slot that does not exist.
Status CheckRequest(const GenerationRequest& request, const EngineInfo& info, const Tokenizer& tokenizer);

}  // namespace outrider
