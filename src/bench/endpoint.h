// Endpoint: an OpenAI-compatible server as a benchmark sees it: a request goes out, pieces of text come back, and the
// time of each is kept. All servers are measured through this one interface; what only some of them report
// (llama.cpp's `timings`) is kept where it is present.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

struct BenchMessage {
  std::string role, content;
};

struct BenchRequest {
  std::vector<BenchMessage> messages;
  double temperature = 0;
  uint64_t seed = 1;
  int max_tokens = 128;
};

// One answer, and when its pieces arrived. Times are seconds since the request was sent.
struct BenchAnswer {
  std::string text;
  std::string finish_reason;
  int prompt_tokens = 0, tokens = 0;  // as the server counts them; 0 if it does not report them
  double seconds = 0;
  std::vector<double> arrivals;  // of each event that contained text
  Json timings;                  // llama.cpp's and ours: stages, drafters; null if the server does not report them
  Json provenance;               // ours: which drafter proposed each token; null if the server does not report it

  double FirstTokenSeconds() const { return arrivals.empty() ? seconds : arrivals.front(); }

  // Of the tokens after the first, whose speed does not depend on the prompt. 0 if there are too few to measure it.
  double TokensPerSecond() const {
    const double after_first = seconds - FirstTokenSeconds();
    return tokens > 1 && arrivals.size() > 1 && after_first > 0 ? (tokens - 1) / after_first : 0;
  }
};

// A token of an answer, and how close the second most likely token was.
struct RankedToken {
  std::string text;
  std::string runner_up;
  double gap = 0;  // between the log probabilities of the two most likely, natural logarithm
};

class Endpoint {
 public:
  // "http://host:port" or "http://host:port/v1"; kInvalidArgument if it is not such an address. A request ends
  // soon after `*stop`, which outlives the endpoint, has become true.
  static Result<std::unique_ptr<Endpoint>> Create(const std::string& url, const std::string& api_key,
                                                  const std::atomic<bool>* stop);
  virtual ~Endpoint() = default;

  // Blocks; several threads may call. kUnavailable says what happened if the server could not be reached, refused, or
  // dropped the connection in the middle (and how much had arrived by then).
  virtual Result<BenchAnswer> Ask(const BenchRequest& request) = 0;

  // The same request's tokens with their probabilities; empty if the server does not report them.
  virtual Result<std::vector<RankedToken>> AskProbabilities(const BenchRequest& request) = 0;

  // Waits until GET /v1/models is answered; requests then name the first model of that list. kUnavailable after
  // `timeout`.
  virtual Status WaitUntilReady(Duration timeout) = 0;
};

}  // namespace outrider
