#include "api/answer_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/logprobs.h"
#include "base/utf8.h"

namespace outrider {
namespace {

double Ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

}  // namespace

Json TimingsJson(const GenerationTimings& timings) {
  // The first token comes out of the prompt's last batch: n tokens take n - 1 steps of generation.
  const int steps = std::max(timings.generated_tokens - 1, 0);
  return {
      {"cache_n", timings.cached_tokens},
      {"prompt_n", timings.prompt_tokens},
      {"prompt_ms", timings.prompt_ms},
      {"prompt_per_token_ms", Ratio(timings.prompt_ms, timings.prompt_tokens)},
      {"prompt_per_second", Ratio(1000.0 * timings.prompt_tokens, timings.prompt_ms)},
      {"predicted_n", timings.generated_tokens},
      {"predicted_ms", timings.generate_ms},
      {"predicted_per_token_ms", Ratio(timings.generate_ms, steps)},
      {"predicted_per_second", Ratio(1000.0 * steps, timings.generate_ms)},
      {"draft_n", timings.drafted_tokens},
      {"draft_n_accepted", timings.accepted_tokens},
      {"replayed_n", timings.replayed_tokens},
      {"stages",
       {{"prefill_ms", timings.prompt_ms},
        {"draft_ms", timings.draft_ms},
        {"verify_ms", timings.decode_ms},
        {"sample_ms", timings.sample_ms},
        {"rollback_ms", timings.rollback_ms}}},
  };
}

Json ProgressJson(const PromptProgress& progress) {
  return {{"total", progress.total},
          {"cache", progress.cached},
          {"processed", progress.processed},
          {"time_ms", static_cast<int64_t>(progress.ms)}};
}

Json TimingsJson(const Completion& completion) {
  Json timings = TimingsJson(completion.timings);
  Json& drafters = timings["drafters"] = Json::object();
  for (const DrafterStats& drafter : completion.drafters) {
    drafters[std::string(drafter.name)] = {
        {"proposed", drafter.verified}, {"accepted", drafter.accepted}, {"ms", drafter.seconds * 1000}};
  }
  timings["speed_up"] = completion.speed_up;
  if (!completion.steps.empty()) {
    Json& steps = timings["steps"] = Json::array();
    for (const DraftedStep& step : completion.steps) {
      Json rejected = Json::array();
      for (const std::string& piece : step.rejected) rejected.push_back(ReplaceInvalidUtf8(piece));
      steps.push_back({step.drafter.empty() ? Json() : Json(step.drafter), step.drafted, step.accepted,
                       std::round(step.ms * 1000) / 1000, std::move(rejected)});
    }
  }
  return timings;
}

Json ProvenanceJson(const std::vector<GeneratedToken>& tokens) {
  Json list = Json::array();
  for (const GeneratedToken& token : tokens) {
    Json item = {{"text", ReplaceInvalidUtf8(token.piece)},
                 {"drafter", token.drafter.empty() ? Json() : Json(token.drafter)}};
    if (!IsValidUtf8(token.piece)) item["bytes"] = TokenBytes(token.piece);
    list.push_back(std::move(item));
  }
  return list;
}

Json SettingsJson(const SamplingOptions& sampling, int max_tokens) {
  Json stages = Json::array();
  for (const SamplingStage stage : sampling.stages) stages.push_back(NameOf(stage));
  return {{"seed", sampling.seed},
          {"temperature", sampling.temperature},
          {"dynatemp_range", sampling.dynatemp_range},
          {"dynatemp_exponent", sampling.dynatemp_exponent},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"top_n_sigma", sampling.top_n_sigma},
          {"xtc_probability", sampling.xtc_probability},
          {"xtc_threshold", sampling.xtc_threshold},
          {"typical_p", sampling.typical_p},
          {"repeat_last_n", sampling.repeat_last_n},
          {"repeat_penalty", sampling.repeat_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"dry_multiplier", sampling.dry_multiplier},
          {"dry_base", sampling.dry_base},
          {"dry_allowed_length", sampling.dry_allowed_length},
          {"dry_penalty_last_n", sampling.dry_penalty_last_n},
          {"dry_sequence_breakers", sampling.dry_sequence_breakers},
          {"mirostat", sampling.mirostat},
          {"mirostat_tau", sampling.mirostat_tau},
          {"mirostat_eta", sampling.mirostat_eta},
          {"adaptive_target", -1.0},  // from here on: what llama.cpp has beyond ours, switched off
          {"adaptive_decay", 0.9},
          {"n_keep", 0},
          {"n_discard", 0},
          {"min_keep", 0},
          {"backend_sampling", false},
          {"lora", Json::array()},
          {"samplers", std::move(stages)},
          {"max_tokens", max_tokens},
          {"n_predict", max_tokens}};
}

const char* OpenAiFinishReason(const Completion& completion, bool has_tool_calls) {
  switch (completion.reason) {
    case FinishReason::kEndOfText:
    case FinishReason::kStopString:
      return has_tool_calls ? "tool_calls" : "stop";
    case FinishReason::kLength:
    case FinishReason::kTimeLimit:
    case FinishReason::kCancelled:
      return "length";
    case FinishReason::kError:
      return "error";
  }
  return "stop";
}

std::string SseEvent(std::string_view name, const Json& data) {
  std::string event = name.empty() ? "" : fmt::format("event: {}\n", name);
  return event.append("data: ").append(DumpJson(data)).append("\n\n");
}

}  // namespace outrider
