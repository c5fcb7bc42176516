// Sequence: one slot of the engine's memory and the request that runs in it.
//
// `tokens` are the committed tokens: the prompt and what was generated. The engine's memory holds the first of them;
// the others are still to be decoded. While the slot is idle, `tokens` is exactly what the memory holds.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/token.h"
#include "engine/media.h"
#include "sampling/sampler.h"
#include "scheduler/generation.h"
#include "scheduler/text_stream.h"

namespace outrider {

// A request that waits for a sequence.
struct PendingRequest {
  std::shared_ptr<Generation> generation;
  std::unique_ptr<Sampler> sampler;
  TimePoint submitted;
};

// A token that was drawn in the current step and is not committed yet.
struct DrawnToken {
  Token token;
  bool ends = false;  // it ends the answer (end of text) and has no text itself; set by the Verifier
  std::vector<Candidate> candidates = {};  // what it was drawn from, if the request asks for their probabilities
};

struct Sequence {
  SeqId id = 0;
  std::vector<Token> tokens;
  std::vector<MediaPlace> media;  // where the memory has rows of pictures, and `tokens` stand-ins (engine/media.h)
  AdapterSet adapters;            // with which they are computed
  std::string owner;              // whose they are (GenerationRequest::owner)
  TimePoint last_used{};

  // The running request; empty while idle.
  std::shared_ptr<Generation> generation;
  std::unique_ptr<Sampler> sampler;
  TextStream text;
  GenerationTimings timings;
  std::vector<DrawnToken> drawn;
  std::vector<DraftedStep> steps;  // if asked for
  Pos prompt_length = 0;
  TimePoint submitted{}, admitted{}, first_token{};
  uint64_t last_step = 0;  // in which it took part (StepBatch counts them); 0 = none yet
  int failed_steps = 0;    // failed steps that it took part in
  bool suspect = false;    // after a failed step: is decoded alone once, to find out whether it was the cause

  // For DrawBudget.
  TimePoint last_draw{};
  bool expensive_draw = false;  // its last draw took long
  bool resting = false;         // takes no part in the next step

  bool busy() const { return generation != nullptr; }
  bool generating() const { return timings.generated_tokens > 0; }
};

}  // namespace outrider
