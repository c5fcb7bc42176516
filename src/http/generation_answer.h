// What happens between a generation and its client: chunks are sent as they come, or together at the end, and a client
// that goes away cancels its generation within kDisconnectCheck. Tokens are charged to the client's key.
#pragma once

#include <cpp-httplib/httplib.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/protocol.h"
#include "http/key_limits.h"
#include "scheduler/generation.h"

namespace outrider {

// One choice of an answer, accepted by the scheduler; `lease` is not null.
struct RunningChoice {
  std::shared_ptr<Generation> generation;
  std::shared_ptr<KeyLimiter::Lease> lease;
  int charged_tokens = 0;
  bool finished = false;
};

// What the scheduler has accepted of one request, and how its answer is to be written.
struct AcceptedRequest {
  std::vector<RunningChoice> choices;
  std::unique_ptr<ResponseWriter> writer;
  bool stream;
};

// The generations that are being answered together: usually one. Destroying it cancels them, which has no effect on
// finished ones.
class AnsweredGeneration {
 public:
  // `holds` is destroyed with this object.
  AnsweredGeneration(std::vector<RunningChoice> choices, std::unique_ptr<ResponseWriter> writer,
                     std::shared_ptr<void> holds);
  ~AnsweredGeneration();
  AnsweredGeneration(const AnsweredGeneration&) = delete;
  AnsweredGeneration& operator=(const AnsweredGeneration&) = delete;

  // The next chunk of any choice; nothing if the client went away. Not to be called when all have finished.
  std::optional<Chunk> Next(const std::function<bool()>& client_is_there);
  bool finished() const { return open_ == 0; }

  ResponseWriter& writer() { return *writer_; }

 private:
  const std::shared_ptr<void> holds_;
  std::optional<Chunk> WaitForAny();

  std::vector<RunningChoice> choices_;
  size_t open_;
  size_t last_ = 0;  // the choice that the last chunk came from
  const std::unique_ptr<ResponseWriter> writer_;
};

// Waits for the chunks and fills in `response`: the whole answer, or a stream that waits for them while it is sent.
// `send_error` is called instead if the generation fails before its first byte was sent.
void AnswerWith(std::shared_ptr<AnsweredGeneration> answer, bool stream, const httplib::Request& request,
                httplib::Response& response, const std::function<void(const Status&)>& send_error);

}  // namespace outrider
