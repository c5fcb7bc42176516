#include "scheduler/stats.h"

namespace outrider {

void CountFinished(const Completion& completion, SchedulerStats* stats) {
  const GenerationTimings& timings = completion.timings;
  ++stats->finished[static_cast<size_t>(completion.reason)];
  stats->prompt_tokens += static_cast<uint64_t>(timings.prompt_tokens);
  stats->cached_tokens += static_cast<uint64_t>(timings.cached_tokens);
  stats->generated_tokens += static_cast<uint64_t>(timings.generated_tokens);
  stats->prompt_seconds += timings.prompt_ms / 1000;
  stats->generate_seconds += timings.generate_ms / 1000;
  stats->draft_seconds += timings.draft_ms / 1000;
  stats->decode_seconds += timings.decode_ms / 1000;
  stats->sample_seconds += timings.sample_ms / 1000;
  stats->rollback_seconds += timings.rollback_ms / 1000;
}

}  // namespace outrider
