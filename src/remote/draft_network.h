// DraftNetwork: draft servers that can be asked, as the remote drafter sees them. Nothing blocks and nothing throws: a
// server that cannot be reached, or a stream that broke, is one that says nothing.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "remote/draft.pb.h"

namespace outrider {

// A stream to one draft server. One thread calls. Destroying it ends it.
class DraftStream {
 public:
  virtual ~DraftStream() = default;

  virtual void Send(const draft::v1::ToServer& message) = 0;

  // The next message that has arrived, and when; false if there is none.
  virtual bool Receive(draft::v1::ToClient* message, TimePoint* arrived) = 0;

  // Returns when a message has arrived, when the stream is over, or at `deadline`.
  virtual void Wait(TimePoint deadline) = 0;

  virtual bool over() const = 0;

  // The server broke the protocol: another one is better.
  virtual void Reproach(const Status& status) = 0;
};

class DraftNetwork {
 public:
  virtual ~DraftNetwork() = default;

  // To the server that is likely to answer soonest; null if there is none at the moment.
  virtual std::unique_ptr<DraftStream> Connect() = 0;
};

}  // namespace outrider
