#include "scheduler/prompt_progress.h"

#include <algorithm>

namespace outrider {

Chunk ProgressChunk(const Sequence& sequence, Pos in_memory, TimePoint now) {
  Chunk chunk;
  const int cached = sequence.timings.cached_tokens;
  const int processed = std::clamp(in_memory, cached, sequence.prompt_length);
  const double ms = Milliseconds(now - sequence.admitted);
  chunk.progress.push_back({sequence.prompt_length, cached, processed, ms});
  chunk.timings = sequence.timings;
  chunk.timings.prompt_tokens = processed - cached;
  chunk.timings.prompt_ms = ms;
  return chunk;
}

}  // namespace outrider
