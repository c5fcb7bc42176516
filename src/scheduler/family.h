// Families: requests with one prompt, such as the n answers to a request (GenerationRequest::family). The first of them
// reads the prompt while the others wait; each of these then gets a copy of the memory, byte for byte, instead of
// reading the prompt again.
//
// Belongs to the stepping thread.
#pragma once

#include <span>

#include "engine/engine.h"
#include "scheduler/sequence.h"

namespace outrider {

// Whether a member of the request's family is reading the prompt now, so that it pays to wait.
bool FamilyIsReading(std::span<const Sequence> sequences, const GenerationRequest& request);

// Gives `sequence`, which has just begun, the prompt of a member of its family that is generating, if that is more than
// it has. An engine that cannot copy leaves it as it is.
void ShareFamilyPrompt(std::span<const Sequence> sequences, Engine& engine, Sequence* sequence);

}  // namespace outrider
