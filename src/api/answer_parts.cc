// Pieces of answers that several protocols share: ids, timings, finish reasons, event framing.
#include <fmt/format.h>

#include <algorithm>

#include "api/fields.h"
#include "chat/random_id.h"

namespace outrider {
namespace {

constexpr size_t kIdLength = 24;

double Ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : 0;
}

}  // namespace

std::string MakeId(const char* prefix) {
  return fmt::format("{}{}", prefix, RandomLetters(kIdLength));
}

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
  };
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
