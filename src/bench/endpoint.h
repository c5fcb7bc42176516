// Endpoint: an OpenAI-compatible server as a benchmark sees it: a request goes out, tokens come back, each at its time.
// Outrider and its competitors are measured through the same door; what only some of them tell (llama.cpp's `timings`)
// is taken where it is there.
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

// One answer, and when its parts came. Times are seconds since the request was sent.
struct BenchAnswer {
  std::string text;
  std::string finish_reason;
  int prompt_tokens = 0, tokens = 0;  // as the server counts them; 0 if it does not
  double seconds = 0;
  std::vector<double> arrivals;  // of each event that brought text
  Json timings;                  // llama.cpp's and ours: stages, drafters; null if the server does not tell
  Json provenance;               // ours: who foresaw each token; null if the server does not tell

  double FirstTokenSeconds() const { return arrivals.empty() ? seconds : arrivals.front(); }

  // Of what came after the first: what is decided while generating. 0 if too little did to tell.
  double TokensPerSecond() const {
    const double after_first = seconds - FirstTokenSeconds();
    return tokens > 1 && arrivals.size() > 1 && after_first > 0 ? (tokens - 1) / after_first : 0;
  }
};

// A token of an answer with the chances it had.
struct TokenChances {
  std::string text;
  std::string runner_up;
  double gap = 0;  // between the two best, natural logarithm
};

class Endpoint {
 public:
  // "http://host:port" or "http://host:port/v1"; kInvalidArgument if it is not such an address. A request ends soon
  // after
  // `*stop`, which outlives the endpoint, has become true.
  static Result<std::unique_ptr<Endpoint>> Create(const std::string& url, const std::string& api_key,
                                                  const std::atomic<bool>* stop);
  virtual ~Endpoint() = default;

  // Blocks; several threads may call. kUnavailable says what happened if the server could not be reached, refused, or
  // dropped the connection in the middle (and how much had come by then).
  virtual Result<BenchAnswer> Ask(const BenchRequest& request) = 0;

  // The same request's tokens with their chances; none if the server does not tell them.
  virtual Result<std::vector<TokenChances>> AskChances(const BenchRequest& request) = 0;

  // Waits until GET /v1/models is answered, the first of which is then asked; kUnavailable after `patience`.
  virtual Status WaitUntilReady(Duration patience) = 0;
};

}  // namespace outrider
