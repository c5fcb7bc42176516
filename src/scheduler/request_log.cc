#include "scheduler/request_log.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/log.h"
#include "scheduler/stats.h"

namespace outrider {
namespace {

const char* Name(FinishReason reason) {
  constexpr std::array<const char*, kFinishReasons> kNames = {"end of text", "stop string", "length",
                                                              "time limit",  "cancelled",   "error"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace

void LogFinished(const Completion& completion) {
  const GenerationTimings& t = completion.timings;
  const double rate = t.generate_ms > 0 ? (t.generated_tokens - 1) * 1000 / t.generate_ms : 0;
  std::string drafts;
  if (t.drafted_tokens > 0) {
    drafts = fmt::format(", {} of {} drafted accepted (", t.accepted_tokens, t.drafted_tokens);
    bool first = true;
    for (const DrafterStats& drafter : completion.drafters) {
      if (drafter.verified == 0) continue;
      drafts += fmt::format("{}{} {}", first ? "" : ", ", drafter.name, drafter.accepted);
      first = false;
    }
    drafts += fmt::format("), about {:.2f}x plain", completion.speed_up);
  }
  LogInfo(
      "slot {}: prompt {} tokens ({} cached) in {:.0f} ms, {} tokens in {:.0f} ms ({:.1f} t/s{}), queued {:.0f} ms, {}",
      completion.slot, t.prompt_tokens + t.cached_tokens, t.cached_tokens, t.prompt_ms, t.generated_tokens,
      t.generate_ms, rate, drafts, t.queue_ms, Name(completion.reason));
}

void LogNeverBegun(Duration waited) {
  LogInfo("a request was given up after {:.0f} ms in the queue", Milliseconds(waited));
}

}  // namespace outrider
