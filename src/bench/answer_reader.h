// AnswerReader: a streamed answer of an OpenAI-compatible server, out of its bytes as they arrive.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "bench/endpoint.h"
#include "bench/sse_reader.h"

namespace outrider {

class AnswerReader {
 public:
  // The request is sent now; `clock` outlives the reader.
  explicit AnswerReader(const Clock& clock);

  // False if the answer is larger than any honest one; the connection is then to be closed.
  bool Feed(std::string_view bytes);

  // Whether the server ended the answer, rather than the connection breaking.
  bool complete() const { return done_ || !answer_.finish_reason.empty(); }
  const std::string& raw() const { return raw_; }      // how the bytes began, for servers that refuse without events
  const std::string& error() const { return error_; }  // that an event reported; "" if none did
  BenchAnswer& answer() { return answer_; }
  double SecondsSinceSent() const;

 private:
  void Take(std::string_view data);

  const Clock& clock_;
  const TimePoint start_;
  BenchAnswer answer_;
  std::string raw_, error_;
  size_t total_ = 0;
  bool done_ = false;
  SseReader reader_;
};

// The first of an answer's `choices`; null if there is none.
const Json& FirstChoice(const Json& answer);

// What the body of a failed request says, in one line.
std::string ErrorMessage(const std::string& body);

}  // namespace outrider
