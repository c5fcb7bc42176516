// Fields of answers that several protocols share: timings, settings, finish reasons, and the framing of events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "scheduler/generation.h"

namespace outrider {

// llama.cpp's `prompt_progress` object.
Json ProgressJson(const PromptProgress& progress);

// llama.cpp's `timings` object.
Json TimingsJson(const GenerationTimings& timings);
Json TimingsJson(const Completion& completion);  // also what each drafter did

// Each token's text and the drafter that proposed it:
// [{"text": " the", "drafter": "suffix"}, {"text": " cat", "drafter": null}]. A token that is not whole characters also
// has its "bytes".
Json ProvenanceJson(const std::vector<GeneratedToken>& tokens);

// The settings as llama.cpp reports them in /props and with each /completion.
Json SettingsJson(const SamplingOptions& sampling, int max_tokens);

// OpenAI's finish_reason ("stop", "length", "tool_calls").
const char* OpenAiFinishReason(const Completion& completion, bool has_tool_calls);

// One server-sent event. `name` "" leaves out the event: line.
std::string SseEvent(std::string_view name, const Json& data);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace outrider
