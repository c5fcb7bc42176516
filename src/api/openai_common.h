// What /v1/chat/completions and /v1/completions have in common: the objects their answers are wrapped in, and the
// fields that ask for streams.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/choices.h"
#include "api/llama_answer.h"
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

// Fields that OpenAI does not send: the seed that repeats this answer, and llama.cpp's timings.
void AddOurs(const Completion& completion, Json* answer);

// What a request says about how its answer is sent.
struct AnswerOptions {
  bool stream = false;
  bool include_usage = false;      // an event with the sum of tokens at the end
  bool timings_per_token = false;  // timings in each event
  bool return_progress = false;    // events about the prompt
  bool verbose = false;            // what /completion would answer, as "__verbose"
};

// "stream", "stream_options.include_usage", and llama.cpp's "timings_per_token", "return_progress", "verbose".
Status ReadAnswerOptions(const Json& body, const ApiContext& context, AnswerOptions* options);

// What the choices of one OpenAI answer share.
struct OpenAiAnswer {
  OpenAiAnswer(const char* id_prefix, const char* whole_type, const char* event_type, const AnswerOptions& answer,
               const ApiContext& context, int choices, int n)
      : envelope(id_prefix, context.model_name),
        whole(whole_type),
        event(event_type),
        options(answer),
        sum(choices, n) {}

  const OpenAiEnvelope envelope;
  const char* const whole;  // "object" of an answer that is not streamed
  const char* const event;  // "object" of the events of a stream
  const AnswerOptions options;
  ChoiceSum sum;

  // What follows the last event of a choice: nothing, or the end of the stream.
  std::string EndOfChoice(int index, const Completion& completion);

  // `answer` with what belongs to the whole answer and not to a choice.
  void FinishWhole(int index, const Completion& completion, Json* answer);

  // The answers of single choices as one.
  Json Merge(std::vector<Json> answers) const;
};

}  // namespace outrider
