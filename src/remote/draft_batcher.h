// DraftDesk: where a draft server does its work. It drafts for all streams at once, one token of each line at a time,
// so that a commit that changes everything is heard at once.
//
// A stream gets one of the engine's sequences when it opens, the one whose memory begins most like its context, and
// gives it back when it ends; what was read stays for the next one. Contexts are read in slices between the tokens of
// others' lines. Texts are shared between streams of the same client and owner only.
//
// One thread calls (remote/draft_worker.h).
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

// The client's end of a stream. Called by the desk's thread; must not block, and must not call back.
class DraftPeer {
 public:
  virtual ~DraftPeer() = default;

  virtual void Send(const draft::v1::ToClient& message) = 0;
  virtual void ReadMore() = 0;                   // the last message was dealt with
  virtual void Close(const Status& status) = 0;  // the last call
};

struct DraftDeskOptions {
  std::string model_name;                          // for clients' logs
  int ahead = 24;                                  // tokens past the text
  int window = 0;                                  // tokens the model looks back on; 0 = its context
  int streams_per_client = 0;                      // 0 = as many as there are sequences
  size_t max_length = 1 << 18;                     // tokens of a text
  Duration open_limit = std::chrono::seconds(10);  // to send the first message
  Duration idle_limit = std::chrono::minutes(10);  // without a message
};

struct DraftDeskStats {
  uint64_t streams = 0;                            // now
  uint64_t opened = 0, refused = 0, broken = 0;    // got a sequence; found none free; broke a rule
  uint64_t context_tokens = 0, reused_tokens = 0;  // that came; that did not need to
  uint64_t commits = 0, committed_tokens = 0;
  uint64_t drafted_tokens = 0, sent_tokens = 0;
  double draft_seconds = 0;
};

class DraftDesk {
 public:
  // The model outlives the desk.
  DraftDesk(const DraftModel& model, const DraftDeskOptions& options, const Clock& clock = Clock::Real());
  ~DraftDesk();

  void Connect(StreamId id, std::string client, std::shared_ptr<DraftPeer> peer);
  void Receive(StreamId id, const draft::v1::ToServer& message);
  void Disconnect(StreamId id);

  // Adds a token to every line that is to grow, or reads a slice of a context; false if there is nothing to do.
  bool Work();

  // Ends streams that have been silent for too long.
  void CloseSilent();

  // Ends all of them.
  void CloseAll(const Status& status);

  const DraftDeskStats& stats() const { return stats_; }

 private:
  struct Stream;
  // One of the engine's sequences, and whose text is in its memory.
  struct Seat {
    bool taken = false;
    std::string client, owner;
    std::vector<Token> text;
    uint64_t last_used = 0;
  };

  Status Hear(Stream& stream, const draft::v1::ToServer& message);
  Status TakeSeat(Stream& stream);
  void LeaveSeat(Stream& stream);
  void Close(StreamId id, const Status& status);
  void SendProposal(Stream& stream);
  bool ReadSlice();

  const DraftModel& model_;
  const DraftDeskOptions options_;
  const Clock& clock_;
  ModelDrafter drafter_;
  DraftLimits limits_;
  std::map<StreamId, std::unique_ptr<Stream>> streams_;
  std::vector<Seat> seats_;
  uint64_t uses_ = 0;
  StreamId last_reader_ = 0;
  DraftDeskStats stats_;

  // Scratch.
  std::vector<Stream*> drafting_;
  std::vector<Proposal> proposals_;
  std::vector<Proposal*> asked_;
  draft::v1::ToClient message_;
};

}  // namespace outrider
