// What llama.cpp counts too keeps its name there, so dashboards made for it work; the rest begins with outrider_.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "api/info.h"
#include "base/metrics_writer.h"

namespace outrider {
namespace {

constexpr std::array<std::string_view, kFinishReasons> kReasonLabels = {"end_of_text", "stop_string", "length",
                                                                        "time_limit",  "cancelled",   "error"};

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

std::string MetricsText(const SchedulerStats& stats) {
  MetricsWriter out;
  out.Counter("llamacpp:prompt_tokens_total", "Prompt tokens decoded, without those taken from memory",
              stats.prompt_tokens);
  out.Counter("llamacpp:prompt_tokens_cached_total", "Prompt tokens that were in memory already", stats.cached_tokens);
  out.Counter("llamacpp:prompt_seconds_total", "Time from the first row to the first token, summed over requests",
              stats.prompt_seconds);
  out.Counter("llamacpp:tokens_predicted_total", "Tokens generated", stats.generated_tokens);
  out.Counter("llamacpp:tokens_predicted_seconds_total",
              "Time from the first to the last generated token, summed over requests", stats.generate_seconds);
  out.Counter("llamacpp:n_decode_total", "Steps, each one batch of the engine", stats.steps);
  out.Counter("llamacpp:n_tokens_max", "Tokens of the longest prompt with its answer", stats.longest);
  uint64_t proposed = 0, accepted = 0;
  for (const DrafterStats& drafter : stats.drafters) {
    proposed += drafter.proposed;
    accepted += drafter.accepted;
  }
  out.Counter("llamacpp:spec_decode_num_draft_tokens_total", "Draft tokens verified", proposed);
  out.Counter("llamacpp:spec_decode_num_accepted_tokens_total", "Draft tokens that were right", accepted);
  out.Counter("llamacpp:spec_decode_num_drafts_total", "Drafts verified", stats.accepted_length.count());
  out.Gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens per second, averaged over all requests",
            PerSecond(stats.prompt_tokens, stats.prompt_seconds));
  out.Gauge("llamacpp:predicted_tokens_seconds", "Generated tokens per second, averaged over all requests",
            PerSecond(stats.generated_tokens, stats.generate_seconds));
  out.Gauge("llamacpp:n_busy_slots_per_decode", "Slots with a request per step, on average",
            static_cast<double>(stats.busy_slots) / static_cast<double>(std::max<uint64_t>(stats.steps, 1)));
  out.Gauge("llamacpp:requests_processing", "Requests that run now", stats.running);
  out.Gauge("llamacpp:requests_deferred", "Requests that wait now", stats.queued);

  std::vector<std::pair<std::string_view, uint64_t>> finished;
  for (size_t i = 0; i < kFinishReasons; ++i) finished.emplace_back(kReasonLabels[i], stats.finished[i]);
  out.CounterBy("reason", "outrider_requests_finished_total", "Requests that ended, by why they ended", finished,
                [](const auto& reason) { return reason; });
  out.Counter("outrider_requests_refused_total", "Requests turned away because the queue was full", stats.refused);
  out.Gauge("outrider_prompt_cache_bytes", "Main memory of prompts that are kept beyond the slots",
            static_cast<double>(stats.cache_bytes));
  out.Counter("outrider_rows_total", "Rows decoded, over all steps", stats.rows);
  std::vector<std::pair<size_t, uint64_t>> by_adapter;
  for (size_t id = 0; id < stats.adapter_requests.size(); ++id) by_adapter.emplace_back(id, stats.adapter_requests[id]);
  out.CounterBy("adapter", "outrider_adapter_requests_total",
                "Requests that ended, by the adapters that they used (/lora-adapters lists them)", by_adapter,
                [](const auto& adapter) { return adapter; });
  out.Counter("outrider_adapter_switches_total", "Steps with other adapters than the step before",
              stats.adapter_switches);
  out.Counter("outrider_lookahead_steps_total",
              "Steps that a replica of the model began before the one before was over", stats.lookahead_steps);
  out.Distribution("outrider_first_token_seconds", "Time from submission to the first token",
                   stats.first_token_seconds);
  const std::vector<std::pair<std::string_view, double>> stages = {{"prefill", stats.prompt_seconds},
                                                                   {"draft", stats.draft_seconds},
                                                                   {"verify", stats.decode_seconds},
                                                                   {"sample", stats.sample_seconds},
                                                                   {"rollback", stats.rollback_seconds}};
  out.CounterBy("stage", "outrider_stage_seconds_total", "Time by stage, summed over requests that ended", stages,
                [](const auto& stage) { return stage; });
  out.CounterBy(
      "drafter", "outrider_draft_tokens_proposed_total", "Draft tokens verified, by drafter", stats.drafters,
      [](const DrafterStats& drafter) { return std::pair(drafter.name, static_cast<double>(drafter.proposed)); });
  out.CounterBy(
      "drafter", "outrider_draft_tokens_accepted_total", "Draft tokens that were right, by drafter", stats.drafters,
      [](const DrafterStats& drafter) { return std::pair(drafter.name, static_cast<double>(drafter.accepted)); });
  out.CounterBy("drafter", "outrider_draft_seconds_total", "Time drafters took", stats.drafters,
                [](const DrafterStats& drafter) { return std::pair(drafter.name, drafter.seconds); });
  out.Distribution("outrider_accepted_length", "Right tokens at the beginning of each verified draft",
                   stats.accepted_length);
  out.Gauge("outrider_speed_up", "Estimate of how much faster than without drafts, lately", stats.speed_up);
  out.Distribution("outrider_step_rows", "Rows of one step", stats.step_rows);
  out.Distribution("outrider_step_cost_ratio", "Time of a step over what the cost curve expected",
                   stats.step_cost_ratio);
  out.Distribution("outrider_step_seconds", "Time of one step", stats.step_seconds);
  return out.Take();
}

}  // namespace outrider
