// Scheduler: many requests, one engine, one step at a time.
//
// Requests wait until a sequence (slot) is free, oldest first; a request whose slot is busy, or whose family is reading
// the same prompt, lets others pass. Then they share the engine's batches. Every generating sequence gets its next row
// in every step, except while DrawBudget lets it rest, or while a sequence suspected of a failure is decoded alone.
// Prompts are decoded beside them in slices, so a slice is the longest that a sequence waits because of prompts. A
// finished sequence keeps its memory; the next request that begins with the same tokens continues from there.
//
// A sequence consists of its committed tokens and of the number of them that are in the engine's memory. Decoding a
// prompt, generating the next token and decoding tokens again after a rollback are the same operation: adding rows for
// the tokens that are not in memory yet.
//
// Threads: Submit, Stats, Slots, the slot actions and Drain may be called from any thread. Step is called by one
// thread: the one Start makes, or a test's.
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "drafters/speculator.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "sampling/sampler.h"
#include "scheduler/committer.h"
#include "scheduler/draw_budget.h"
#include "scheduler/generation.h"
#include "scheduler/inbox.h"
#include "scheduler/outbox.h"
#include "scheduler/sequence.h"
#include "scheduler/slot_pool.h"
#include "scheduler/stats.h"
#include "scheduler/status_board.h"
#include "scheduler/step_batch.h"
#include "scheduler/step_costs.h"
#include "scheduler/verifier.h"

namespace outrider {

struct SchedulerOptions {
  int max_queue = 64;                           // requests that may wait; one more is refused with kResourceExhausted
  int prompt_slice = 128;                       // prompt tokens decoded per step while other sequences are generating
  uint64_t cache_bytes = 0;                     // main memory for prompts beyond those of the slots
  Duration max_request_time = Duration::max();  // bound on every request's deadline
  VerifyMode verify = VerifyMode::kMatch;       // how drafts are checked; kReject may change the text
};

class Scheduler {
 public:
  // All references passed in must outlive the scheduler. `speculator`: null = plain decoding.
  Scheduler(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters, const SchedulerOptions& options,
            std::unique_ptr<Speculator> speculator = nullptr, const Clock& clock = Clock::Real());
  ~Scheduler();

  // Checks the request (the prompt fits, the grammar parses) and queues it.
  Result<std::shared_ptr<Generation>> Submit(GenerationRequest request);

  // One round: admit, plan, draft, decode, verify, commit. Returns false if there was nothing to decode.
  bool Step();

  // Runs Step in a thread of its own until Drain.
  void Start();

  // Refuses new requests from now on. Accepted ones may finish within `limit`; after that they end with kTimeLimit.
  // Returns at once; a second call can only shorten the limit.
  void Drain(Duration limit) { inbox_.Stop(Later(clock_.Now(), limit)); }
  bool draining() const { return inbox_.stop_until().has_value(); }
  void WaitUntilStopped() { inbox_.WaitUntilStopped(); }  // until all requests and the thread of Start have ended

  SchedulerStats Stats() const;
  std::vector<SlotStatus> Slots() const { return status_.slots(); }

  // Runs between two steps, so it may wait as long as a step takes.
  StepCosts Costs();

  // Slot actions run between steps. The slot must be idle: kUnavailable otherwise.
  Result<SavedSlot> SaveSlot(SeqId slot);
  Status RestoreSlot(SeqId slot, SavedSlot saved, const std::string& owner);  // whose requests may continue from it
  Result<int> EraseSlot(SeqId slot);                                          // tokens forgotten

 private:
  // The stages of a step.
  void EndLost();
  void Admit();
  void ChooseDrafts();
  void BuildBatch();
  void SaveStates();
  Status Decode();
  void Verify();
  void Commit();
  void Isolate(const Status& error);
  void PublishStatus();

  std::optional<FinishReason> Lost(const Generation& generation, TimePoint submitted, TimePoint now) const;
  void GiveUp(PendingRequest request, FinishReason reason, TimePoint now);
  int DraftRoom(const Sequence& sequence) const;
  bool StepOrAbandon();
  template <typename Work>
  double Timed(double GenerationTimings::*stage, Work work);
  void Loop();

  Engine& engine_;
  const Tokenizer& tokenizer_;
  FilterFactory& filters_;
  const SchedulerOptions options_;
  const Clock& clock_;
  std::vector<std::pair<Token, float>> end_token_bans_;  // what ignore_eos adds to the logit bias; constant

  Inbox inbox_;

  // Used only by the stepping thread.
  const std::unique_ptr<Speculator> speculator_;
  SlotPool slots_;
  StepBatch step_;
  Verifier verifier_;
  SchedulerStats stats_;
  Outbox outbox_;
  Committer committer_;
  DrawBudget draw_budget_;
  std::optional<TimePoint> stop_until_;  // when running requests must end
  TimePoint decode_start_{};
  std::vector<DraftableSequence> draftable_;  // scratch of ChooseDrafts
  std::vector<SequenceRows> others_;          // scratch of ChooseDrafts
  std::vector<SlotStatus> slot_status_;       // scratch of PublishStatus
  StepLayout layout_;                         // scratch of SaveStates

  StatusBoard status_;
  std::thread thread_;
};

}  // namespace outrider
