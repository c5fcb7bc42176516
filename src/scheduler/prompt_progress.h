// What a consumer is told while the prompt is read, if its request asks for that (GenerationRequest::report_progress).
#pragma once

#include "base/clock.h"
#include "scheduler/generation.h"
#include "scheduler/sequence.h"

namespace outrider {

// `in_memory`: tokens of the sequence in the engine's memory.
Chunk ProgressChunk(const Sequence& sequence, Pos in_memory, TimePoint now);

}  // namespace outrider
