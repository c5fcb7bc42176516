// Scheduler: many requests, one engine, one step at a time.
//
// Requests wait in a FIFO queue until a sequence (slot) is free, then share the engine's batches: every running
// sequence gets its next row in every step, prompts enter in slices beside them, so nobody stalls longer than one
// slice. A finished sequence keeps its memory; the next request that begins with the same tokens continues from there.
//
// A sequence is its committed tokens plus how many of them are in the engine's memory. Decoding a prompt, generating
// the next token and redoing tokens after a rollback are the same thing: rows for the tokens not in memory yet.
//
// Threads: Submit, Stats, Slots, the slot actions and Drain may be called from any thread. Step is called by one
// thread: the one Start makes, or a test's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "drafters/speculator.h"
#include "engine/batch.h"
#include "engine/engine.h"
#include "engine/tokenizer.h"
#include "sampling/sampler.h"
#include "scheduler/generation.h"
#include "scheduler/sequence.h"
#include "scheduler/stats.h"

namespace outrider {

struct SchedulerOptions {
  int max_queue = 64;                           // requests that may wait; one more is refused with kResourceExhausted
  int prompt_slice = 128;                       // prompt tokens decoded per step while other sequences are generating
  Duration max_request_time = Duration::max();  // bound on every request's deadline
  VerifyMode verify = VerifyMode::kMatch;       // how drafts are checked; kReject may change the text
};

class Scheduler {
 public:
  // Everything passed in outlives the scheduler.
  // `speculator`: null = plain decoding.
  Scheduler(Engine& engine, const Tokenizer& tokenizer, FilterFactory& filters, const SchedulerOptions& options,
            std::unique_ptr<Speculator> speculator = nullptr, const Clock& clock = Clock::Real());
  ~Scheduler();

  // Checks the request (the prompt fits, the grammar parses) and queues it.
  Result<std::shared_ptr<Generation>> Submit(GenerationRequest request);

  // One round: admit, plan, draft, decode, verify, commit. Returns false if there was nothing to decode.
  bool Step();

  // Runs Step in a thread of its own until Drain.
  void Start();

  // No new requests from now on; accepted ones may finish within `limit`, then are cut with kTimeLimit. Returns at
  // once; a second call can only shorten the limit.
  void Drain(Duration limit);
  void WaitUntilStopped();  // until all is done and the thread of Start has ended

  SchedulerStats Stats() const;
  std::vector<SlotStatus> Slots() const;

  // Slot actions run between steps. The slot must be idle: kUnavailable otherwise.
  Result<SavedSlot> SaveSlot(SeqId slot);
  Status RestoreSlot(SeqId slot, SavedSlot saved);
  Result<int> EraseSlot(SeqId slot);  // tokens forgotten

 private:
  // A sequence's part in the current step.
  struct Turn {
    Sequence* sequence;
    int rows;  // how many of its committed tokens are decoded
    int logits_row =
        -1;  // the batch row that tells the next token, those of the draft follow; -1 while the prompt goes on
    std::span<const DraftToken> draft = {};
    int accepted = 0;  // of the draft; set by Verify
  };

  void RunCommands();
  void EndLost();
  void Admit();
  void Plan();
  void Draft();
  Status Decode();
  void Verify();
  void Commit();
  void Isolate(const Status& error);
  void PublishStatus();
  void DeliverCompletions();

  Status Check(const GenerationRequest& request) const;
  std::optional<FinishReason> Lost(const Generation& generation, TimePoint submitted, TimePoint now) const;
  Sequence* ChooseSequence(const GenerationRequest& request);
  Pos Reusable(const Sequence& sequence, const GenerationRequest& request) const;
  void TakePending();
  void Begin(Sequence& sequence, PendingRequest request);
  int Missing(const Sequence& sequence) const;
  bool GoesOn(const Turn& turn) const;
  void ShareRows(int rows);
  void LeaveTail(Turn& turn) const;
  void SaveStates();
  void TakeBack(Sequence& sequence, Pos length);
  void AddRows(Turn& turn);
  Token DrawRow(const Turn& turn, int row);
  VerifyMode ModeFor(const GenerationRequest& request) const;
  bool KeepDrawn(const Turn& turn, int row, Token token);
  void CommitDrawn(const Turn& turn);
  std::optional<FinishReason> Append(Sequence& sequence, GeneratedToken token);
  int TokensLeft(const Sequence& sequence) const;
  int DraftRoom(const Sequence& sequence) const;
  GeneratedToken Describe(const Turn& turn, int row, Token token);
  bool MaySpeculate(const Turn& turn) const;
  std::vector<DrafterStats> DraftersOf(SeqId seq) const;
  template <typename Work>
  double Timed(double GenerationTimings::*stage, Work work);
  void Finish(Sequence& sequence, FinishReason reason, Status error = {});
  Result<Sequence*> IdleSequence(SeqId slot);
  void RunBetweenSteps(std::function<void()> command);
  void Loop();

  Engine& engine_;
  const Tokenizer& tokenizer_;
  FilterFactory& filters_;
  const SchedulerOptions options_;
  const Clock& clock_;
  const std::unique_ptr<Speculator> speculator_;

  // Only the stepping thread touches these.
  std::vector<Sequence> sequences_;
  std::vector<Turn> turns_;
  std::vector<Turn*> prompts_;                      // scratch of ShareRows
  std::vector<Sequence*> begun_;                    // scratch of Admit
  std::vector<SpeculationTurn> speculation_turns_;  // scratch of Draft
  std::vector<TokenProbability> target_;            // scratch of DrawRow
  Batch batch_;
  TimePoint decode_start_{};
  double restore_ms_ = 0;                                                   // of the step: taking back
  std::vector<std::pair<std::shared_ptr<Generation>, Chunk>> completions_;  // to be delivered at the end of the step
  SchedulerStats stats_;
  std::optional<TimePoint> cut_at_;  // when draining ends

  mutable std::mutex mutex_;         // guards what follows
  std::condition_variable work_;     // there is something to do
  std::condition_variable stopped_;  // stepping_ became false
  std::deque<PendingRequest> pending_;
  std::deque<std::function<void()>> commands_;
  std::optional<TimePoint> drain_until_;  // set by Drain
  bool stepping_ = false;                 // the thread of Start is running
  uint64_t refused_ = 0;
  SchedulerStats published_stats_;  // as of the last step
  std::vector<SlotStatus> published_slots_;

  std::vector<std::pair<Token, float>> end_token_bans_;  // what ignore_eos adds to the logit bias; constant
  std::thread thread_;
};

}  // namespace outrider
