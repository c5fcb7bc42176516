// What /v1/chat/completions and /v1/completions have in common: the objects their answers are wrapped in, and the
// fields that ask for streams.
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

  // The event after the last choice if stream_options.include_usage asks for it.
  std::string UsageEvent(const char* object, const GenerationTimings& timings) const;

 private:
  const std::string id_;
  const int64_t created_;  // seconds since the epoch
  const std::string model_;
};

Json OpenAiUsage(const GenerationTimings& timings);

// Fields that OpenAI does not send: the seed that repeats this answer, and llama.cpp's timings.
void AddOurs(const Completion& completion, Json* answer);

// "stream" and "stream_options.include_usage".
Status ReadStreamFields(const Json& body, bool* stream, bool* include_usage);

}  // namespace outrider
