// What the scheduler counts. Plain data: logs, /slots and /metrics are views of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/token.h"
#include "engine/media.h"
#include "scheduler/generation.h"

namespace outrider {

inline constexpr size_t kFinishReasons = 6;  // enumerators of FinishReason

struct SchedulerStats {
  std::array<uint64_t, kFinishReasons> finished{};  // requests by FinishReason
  uint64_t refused = 0;                             // requests refused because the queue was full
  uint64_t prompt_tokens = 0;                       // decoded
  uint64_t cached_tokens = 0;                       // taken from memory instead
  uint64_t generated_tokens = 0;
  double prompt_seconds = 0;    // sum over requests
  double generate_seconds = 0;  // sum over requests
  // How the time of the steps after the first token was spent, summed over requests (see GenerationTimings).
  double draft_seconds = 0, decode_seconds = 0, sample_seconds = 0, rollback_seconds = 0;
  uint64_t steps = 0;
  std::vector<uint64_t> adapter_requests = {};  // requests that ended, by the id of each adapter that they used
  uint64_t adapter_switches = 0;                // steps with other adapters than the step before
  uint64_t lookahead_steps = 0;                 // steps whose rows were begun before they were asked for
  uint64_t rows = 0;                            // over all steps
  uint64_t busy_slots = 0;                      // summed over all steps
  uint64_t longest = 0;                         // tokens of the longest prompt with its answer
  uint64_t cache_bytes = 0;                     // of prompts that are kept beyond the slots, now
  int running = 0;                              // now
  int queued = 0;                               // now
  Histogram first_token_seconds{{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}};  // from submission
  std::vector<DrafterStats> drafters;
  Histogram accepted_length{{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32}};  // of verified drafts
  Histogram step_rows{{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512}};
  Histogram step_cost_ratio{{0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.5, 2}};  // measured / expected
  double speed_up = 1;  // estimate of the recent speed-up over plain decoding
  Histogram step_seconds{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5}};
};

// Adds the counts of a request that has ended.
void CountFinished(const Completion& completion, SchedulerStats* stats);

struct SlotStatus {
  SeqId id = 0;
  bool busy = false;
  int tokens_in_memory = 0;
  int prompt_tokens = 0;     // of the running request, or of the last one
  int generated_tokens = 0;  // likewise
  int tokens_left = 0;       // until max_tokens or the context's end; -1 while idle
  std::string owner = {};    // whose text it holds (GenerationRequest::owner)
};

// A copy of a slot's memory, for saving and restoring.
struct SavedSlot {
  std::vector<Token> tokens;
  std::vector<uint8_t> state;
  AdapterSet adapters = {};            // with which it was computed
  std::vector<MediaPlace> media = {};  // where pictures stand among the tokens; such a slot is not written to a file
};

}  // namespace outrider
