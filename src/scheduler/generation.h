// A request to the scheduler (GenerationRequest), the pieces of its result (Chunk), and the handle that connects the
// scheduler's thread with the one thread that consumes the result (Generation).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/adapter_set.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/token.h"
#include "engine/media.h"
#include "sampling/sampling_options.h"
#include "spec/draft.h"

namespace outrider {

struct GenerationRequest {
  std::vector<Token> prompt;
  std::vector<MediaSpan> media;  // where the prompt has rows instead of tokens, ascending; stand-ins are in `prompt`
  std::shared_ptr<const void> media_hold;  // their memory (MediaReader::Hold), while the request lives
  SamplingOptions sampling;
  int max_tokens = -1;            // max tokens to generate; 0 = only decode the prompt, -1 = until the context is full
  std::vector<std::string> stop;  // text that ends the generation and is not part of the result
  bool ignore_eos = false;        // ban the tokens that end an answer
  bool show_special = false;      // render control tokens in the text
  int top_logprobs = -1;          // -1 = none; n = log probability of each token and of its n best alternatives
  bool probabilities_after_filters = false;  // log probabilities after the sampler's filters, not those of the model
  bool reuse_prefix = true;                  // memory of an earlier request may be used where the prompts agree
  SeqId slot = -1;                           // the slot to run in; -1 = the one with the longest common prefix
  Duration time_limit = Duration::max();     // from the first generated token on; what exists by then is returned
  Duration deadline = Duration::max();       // from submission on, waiting and prompt included
  SpeculationOptions speculation;
  AdapterSet adapters;  // with which the text is computed
  std::string owner;    // whose request it is; what slots and drafters keep of it is for requests of the same owner and
                        // with the same adapters
  bool report_progress = false;  // chunks also tell how much of the prompt has been read
  uint64_t family = 0;           // requests with the same number have the same prompt, which is read once; 0 = none
};

struct TokenLogprob {
  Token token;
  float logprob;  // natural logarithm
};

struct GeneratedToken {
  Token token;
  std::string piece;              // its bytes; not always whole characters
  float logprob = 0;              // set if the request asked for logprobs
  std::vector<TokenLogprob> top;  // best first, as many as asked for
  std::string_view drafter = "";  // the drafter whose draft had this token; "" = none
};

enum class FinishReason {
  kEndOfText,   // the model ended its answer
  kStopString,  // a stop string appeared
  kLength,      // max_tokens reached or context full
  kTimeLimit,   // time_limit, deadline or the end of draining reached
  kCancelled,   // the consumer went away
  kError,       // the engine failed; `error` says how
};

// Where the time went. Field names of the `timings` object are made from these.
struct GenerationTimings {
  int prompt_tokens = 0;  // tokens of the prompt that were decoded
  int cached_tokens = 0;  // tokens of the prompt that were in memory already
  int generated_tokens = 0;
  double queue_ms = 0;     // from submission to the first row in a batch
  double prompt_ms = 0;    // from there to the first generated token
  double generate_ms = 0;  // from the first generated token to the last

  int drafted_tokens = 0;  // draft tokens that were verified
  int accepted_tokens = 0;
  int replayed_tokens = 0;  // decoded again after a rollback that went back further than the rejected tokens

  // How the time of the steps after the first token was spent.
  double draft_ms = 0;     // drafters
  double decode_ms = 0;    // the engine
  double sample_ms = 0;    // drawing tokens from the engine's rows
  double rollback_ms = 0;  // taking rejected tokens back
};

// The result of one step: of a draft of `drafted` tokens, the first of which came from `drafter`, `accepted` were
// accepted; the step generated one more token.
struct DraftedStep {
  std::string_view drafter;  // "" = none
  int drafted = 0;
  int accepted = 0;
  double ms = 0;                           // since the step before
  std::vector<std::string> rejected = {};  // text of the rejected draft tokens, the first kMaxRejectedListed of them
};
inline constexpr int kMaxRejectedListed = 16;  // bounds the size of an answer: drafts may be a thousand tokens long

struct Completion {
  FinishReason reason = FinishReason::kEndOfText;
  std::string stop_string;  // the one that matched
  Status error;             // for kError
  GenerationTimings timings;
  uint64_t seed = 0;
  SeqId slot = -1;
  std::vector<DrafterStats> drafters = {};  // those that were asked
  double speed_up = 1;                      // estimate of how much faster than without drafts
  std::vector<DraftedStep> steps = {};      // if the request asked for provenance
  bool truncated = false;                   // it ended because the context was full
};

// How much of the prompt is in memory.
struct PromptProgress {
  int total = 0;
  int cached = 0;     // was there already
  int processed = 0;  // those that were there included
  double ms = 0;      // since the request got its slot
};

// A piece of the result: text that is final, in whole UTF-8 characters and past any possible stop string, and the
// tokens it is made of. The last chunk, and only that, carries the completion.
struct Chunk {
  std::string text;
  std::vector<GeneratedToken> tokens;
  GenerationTimings timings;  // so far
  std::optional<Completion> completion;
  std::vector<PromptProgress> progress = {};  // if the request asked for it, oldest first
  int choice = 0;                             // of an answer with several choices; set by who reads the chunks
};

// Shared by the scheduler (which calls Push) and one consumer (which calls Wait and Cancel). There is no limit on the
// size of waiting chunks, but together they are never larger than the whole result, which max_tokens or the context
// limits.
class Generation {
 public:
  explicit Generation(GenerationRequest request) : request_(std::move(request)) {}

  // Waits up to `timeout` for the next chunk; nullopt if none came. All chunks that are waiting are joined into one.
  // Must not be called again after the chunk with the completion.
  std::optional<Chunk> Wait(std::chrono::milliseconds timeout);

  // The consumer does not need the result any more: the scheduler frees the slot before its next step.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  const GenerationRequest& request() const { return request_; }

  // For the scheduler.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void Push(Chunk chunk);

 private:
  const GenerationRequest request_;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::optional<Chunk> waiting_;  // guarded by mutex_
};

}  // namespace outrider
