// DraftNetwork: the draft servers, as the remote drafter sees them. No call blocks (except Wait) and none throws: a
// server that cannot be reached, or a stream that broke, just delivers no messages.
//
// Not thread-safe: all calls come from the stepping thread, but for Servers(), which may be called from any thread at
// the same time: the dashboard asks it.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "remote/draft.pb.h"
#include "spec/draft_server_state.h"

namespace outrider {

// A stream to one draft server. Destroying it ends it. Not thread-safe: all calls come from the stepping thread.
class DraftStream {
 public:
  virtual ~DraftStream() = default;

  virtual void Send(const draft::v1::ToServer& message) = 0;

  // Takes the next message that has arrived, with its time of arrival; false if there is none.
  virtual bool Receive(draft::v1::ToClient* message, TimePoint* arrived) = 0;

  // Returns when a message has arrived, when the stream is over, or at `deadline`.
  virtual void Wait(TimePoint deadline) = 0;

  virtual bool over() const = 0;

  // The server broke the protocol, or does not answer: ends the stream, and the server is not used for a while.
  // `reason` is said after the server's address in the log.
  virtual void ReportFailure(const Status& reason) = 0;
};

class DraftNetwork {
 public:
  virtual ~DraftNetwork() = default;

  // Opens a stream to the usable server with the fewest of our streams; null if there is none at the moment.
  virtual std::unique_ptr<DraftStream> Connect() = 0;

  // The servers and their states.
  virtual std::vector<DraftServerState> Servers() = 0;

  // The mean time of an answer is `seconds` now. Only the drafter can measure it, and only over all servers.
  virtual void SetAnswerSeconds(double seconds) = 0;
};

}  // namespace outrider
