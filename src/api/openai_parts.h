// What /v1/chat/completions and /v1/completions have in common.
#pragma once

#include <string>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

inline constexpr int kMaxTopLogprobs = 20;  // OpenAI's limit

// The head of every object of one answer: id, object, created, model, system_fingerprint, in OpenAI's order.
class OpenAiEnvelope {
 public:
  OpenAiEnvelope(const char* id_prefix, std::string model);

  // `choice` null: an empty list of choices.
  Json Make(const char* object, Json choice) const;

 private:
  const std::string id_;
  const int64_t created_;  // seconds since the epoch
  const std::string model_;
};

Json OpenAiUsage(const GenerationTimings& timings);

// "stream" and "stream_options.include_usage".
Status ReadStreamFields(const Json& body, bool* stream, bool* include_usage);

// "prompt": a string, a list with one string, token ids, or a mix of both; fills request->prompt and checks that it
// fits.
Status ReadPrompt(const Json& body, const ApiContext& context, GenerationRequest* request);

}  // namespace outrider
