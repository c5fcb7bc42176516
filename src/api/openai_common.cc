#include "api/openai_common.h"

#include <ctime>

#include "api/answer_fields.h"
#include "api/fields.h"
#include "chat/random_id.h"

namespace outrider {

OpenAiEnvelope::OpenAiEnvelope(const char* id_prefix, std::string model)
    : id_(MakeId(id_prefix)), created_(std::time(nullptr)), model_(std::move(model)) {}

Json OpenAiEnvelope::Make(const char* object, Json choice) const {
  Json choices = Json::array();
  if (!choice.is_null()) choices.push_back(std::move(choice));
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", "outrider-0.1"},
          {"choices", std::move(choices)}};
}

std::string OpenAiEnvelope::UsageEvent(const char* object, const GenerationTimings& timings) const {
  Json event = Make(object, nullptr);
  event["usage"] = OpenAiUsage(timings);
  return SseEvent("", event);
}

Json OpenAiUsage(const GenerationTimings& timings) {
  const int prompt = timings.cached_tokens + timings.prompt_tokens;
  return {{"prompt_tokens", prompt},
          {"completion_tokens", timings.generated_tokens},
          {"total_tokens", prompt + timings.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", timings.cached_tokens}}}};
}

void AddOurs(const Completion& completion, Json* answer) {
  (*answer)["seed"] = completion.seed;
  (*answer)["timings"] = TimingsJson(completion);
}

Status ReadStreamFields(const Json& body, bool* stream, bool* include_usage) {
  FieldReader fields(body);
  fields.Bool("stream", stream);
  Json options = Json::object();
  fields.Object("stream_options", &options);
  if (!fields.status().ok()) return fields.status();
  FieldReader option_fields(options, "stream_options.");
  option_fields.Bool("include_usage", include_usage);
  return option_fields.status();
}

}  // namespace outrider
