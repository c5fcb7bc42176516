// DraftBatcher: drafts for all streams of a draft server in common batches. Each batch adds one token to every draft,
// so that a commit that makes a draft invalid takes effect before the next token.
//
// A stream gets one of the engine's sequences (a slot) when it opens: the free one whose memory has the longest common
// prefix with its context. It frees the slot when it ends; the memory is kept for the next stream. Contexts are read in
// slices, between the batches that draft for other streams. Only streams of the same client and owner reuse each
// other's memory.
//
// Not thread-safe: all calls come from DraftWorker's thread (remote/draft_worker.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "drafters/model_drafter.h"
#include "remote/draft.pb.h"
#include "remote/draft_session.h"

namespace outrider {

using StreamId = uint64_t;

// The client's end of a stream. Called by the batcher's thread; must not block, and must not call the batcher.
class DraftPeer {
 public:
  virtual ~DraftPeer() = default;

  virtual void Send(const draft::v1::ToClient& message) = 0;
  virtual void ReadMore() = 0;                   // the last message has been handled
  virtual void Close(const Status& status) = 0;  // the last call
};

struct DraftBatcherOptions {
  std::string model_name;                          // for clients' logs
  int ahead = 24;                                  // length of a draft, in tokens
  int window = 0;                                  // the model sees only so many last tokens; 0 = its whole context
  int streams_per_client = 0;                      // 0 = as many as there are sequences
  size_t max_length = 1 << 18;                     // of a text, in tokens
  Duration open_limit = std::chrono::seconds(10);  // time for a client to send its first message
  Duration idle_limit = std::chrono::minutes(10);  // a stream without a message for so long is closed
};

struct DraftStats {
  uint64_t streams = 0;                            // now
  uint64_t opened = 0, refused = 0, broken = 0;    // got a slot; found none free; broke a rule of the protocol
  uint64_t context_tokens = 0, reused_tokens = 0;  // tokens that were sent; that were in memory already
  uint64_t commits = 0, committed_tokens = 0;
  uint64_t drafted_tokens = 0, sent_tokens = 0;
  double draft_seconds = 0;
};

class DraftBatcher {
 public:
  // The model outlives the batcher.
  DraftBatcher(const DraftModel& model, const DraftBatcherOptions& options, const Clock& clock = Clock::Real());
  ~DraftBatcher();

  void Connect(StreamId id, std::string client, std::shared_ptr<DraftPeer> peer);
  void Receive(StreamId id, const draft::v1::ToServer& message);
  void Disconnect(StreamId id);

  // Reads a slice of a context and adds a token to every draft that should be longer; false if there was nothing to do.
  bool Work();

  // Closes streams that exceeded open_limit or idle_limit.
  void CloseSilent();

  // Closes all streams.
  void CloseAll(const Status& status);

  const DraftStats& stats() const { return stats_; }

 private:
  struct Stream;
  // One of the engine's sequences, and the text in its memory with its client and owner.
  struct Slot {
    bool taken = false;
    std::string client, owner;
    std::vector<Token> text;
    uint64_t last_used = 0;
  };

  Status Handle(Stream& stream, const draft::v1::ToServer& message);
  Status TakeSlot(Stream& stream);
  void FreeSlot(Stream& stream);
  void Close(StreamId id, const Status& status);
  void SendProposal(Stream& stream);
  bool ReadSlice();

  const DraftModel& model_;
  const DraftBatcherOptions options_;
  const Clock& clock_;
  ModelDrafter drafter_;
  DraftLimits limits_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  std::vector<Slot> slots_;
  uint64_t uses_ = 0;
  StreamId last_reader_ = 0;
  DraftStats stats_;

  // Scratch.
  std::vector<Stream*> drafting_;
  std::vector<Proposal> proposals_;
  std::vector<Proposal*> asked_;
  draft::v1::ToClient message_;
};

}  // namespace outrider
