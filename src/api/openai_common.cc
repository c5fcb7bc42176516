#include "api/openai_common.h"

#include <ctime>

#include "api/answer_fields.h"
#include "api/fields.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

// It says what made the answer; llama.cpp's begin with "b" as well.
constexpr const char* kFingerprint = "build-outrider-0.1";

}  // namespace

OpenAiEnvelope::OpenAiEnvelope(const char* id_prefix, std::string model)
    : id_(MakeId(id_prefix)), created_(std::time(nullptr)), model_(std::move(model)) {}

Json OpenAiEnvelope::Make(const char* object, Json choice) const {
  Json choices = Json::array();
  if (!choice.is_null()) choices.push_back(std::move(choice));
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", kFingerprint},
          {"choices", std::move(choices)}};
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

Status ReadAnswerOptions(const Json& body, const ApiContext& context, AnswerOptions* options) {
  FieldReader fields(body);
  options->verbose = context.verbose;
  fields.Bool("stream", &options->stream);
  fields.Bool("timings_per_token", &options->timings_per_token);
  fields.Bool("return_progress", &options->return_progress);
  fields.Bool("verbose", &options->verbose);
  Json nested = Json::object();
  fields.Object("stream_options", &nested);
  if (!fields.status().ok()) return fields.status();
  FieldReader option_fields(nested, "stream_options.");
  option_fields.Bool("include_usage", &options->include_usage);
  return option_fields.status();
}

std::string OpenAiAnswer::EndOfChoice(int index, const Completion& completion) {
  sum.Add(index, completion.timings);
  if (!sum.all_finished()) return "";
  std::string events;
  if (options.include_usage) {
    Json last = envelope.Make(event, nullptr);
    last["usage"] = OpenAiUsage(sum.timings());
    AddOurs(completion, &last);
    events = SseEvent("", last);
  }
  return events.append(kSseDone);
}

void OpenAiAnswer::FinishWhole(int index, const Completion& completion, Json* answer) {
  sum.Add(index, completion.timings);
  (*answer)["usage"] = OpenAiUsage(sum.timings());
  AddOurs(completion, answer);
}

Json OpenAiAnswer::Merge(std::vector<Json> answers) const {
  Json merged = std::move(answers[0]);
  for (size_t i = 1; i < answers.size(); ++i) merged["choices"].push_back(std::move(answers[i]["choices"][0]));
  merged["usage"] = OpenAiUsage(sum.timings());
  return merged;
}

}  // namespace outrider
