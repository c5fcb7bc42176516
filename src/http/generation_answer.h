// What happens between a generation and its client: chunks are sent as they come, or together at the end, and a client
// that goes away cancels its generation within kDisconnectCheck. Tokens are charged to the client's key.
#pragma once

#include <cpp-httplib/httplib.h>

#include <functional>
#include <memory>
#include <optional>

#include "api/protocol.h"
#include "http/key_limits.h"
#include "scheduler/generation.h"

namespace outrider {

// A generation that the scheduler has accepted, and how its answer is to be written.
struct AcceptedGeneration {
  std::shared_ptr<Generation> generation;
  std::unique_ptr<ResponseWriter> writer;
  bool stream;
};

// A generation that is being answered. Destroying it cancels the generation, which has no effect on a finished one.
class AnsweredGeneration {
 public:
  // `holds` is destroyed with this object. `lease` is not null.
  AnsweredGeneration(std::shared_ptr<Generation> generation, std::unique_ptr<ResponseWriter> writer,
                     std::shared_ptr<KeyLimiter::Lease> lease, std::shared_ptr<void> holds);
  ~AnsweredGeneration();
  AnsweredGeneration(const AnsweredGeneration&) = delete;
  AnsweredGeneration& operator=(const AnsweredGeneration&) = delete;

  // The next chunk; nothing if the client went away.
  std::optional<Chunk> Next(const std::function<bool()>& client_is_there);

  ResponseWriter& writer() { return *writer_; }

 private:
  const std::shared_ptr<void> holds_;
  const std::shared_ptr<Generation> generation_;
  const std::unique_ptr<ResponseWriter> writer_;
  const std::shared_ptr<KeyLimiter::Lease> lease_;
  int charged_tokens_ = 0;
};

// Waits for the chunks and fills in `response`: the whole answer, or a stream that waits for them while it is sent.
// `send_error` is called instead if the generation fails before its first byte was sent.
void AnswerWith(std::shared_ptr<AnsweredGeneration> answer, bool stream, const httplib::Request& request,
                httplib::Response& response, const std::function<void(const Status&)>& send_error);

}  // namespace outrider
