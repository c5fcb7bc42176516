#include "scheduler/prompt_progress.h"

#include <algorithm>
#include <utility>

namespace outrider {

void ReportProgress(const Sequence& sequence, const Engine& engine, TimePoint now, Outbox* outbox) {
  if (!sequence.generation->request().report_progress) return;
  Chunk chunk;
  const int cached = sequence.timings.cached_tokens;
  const int processed = std::clamp(engine.Length(sequence.id), cached, sequence.prompt_length);
  const double ms = Milliseconds(now - sequence.admitted);
  chunk.progress.push_back({sequence.prompt_length, cached, processed, ms});
  chunk.timings = sequence.timings;
  chunk.timings.prompt_tokens = processed - cached;
  chunk.timings.prompt_ms = ms;
  outbox->Add(sequence.generation, std::move(chunk));
}

}  // namespace outrider
