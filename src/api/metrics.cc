// Prometheus text format 0.0.4. What llama.cpp counts too keeps its name there, so dashboards made for it work; the
// rest begins with outrider_.
#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "api/info.h"

namespace outrider {
namespace {

constexpr std::array<std::string_view, kFinishReasons> kReasonLabels = {"end_of_text", "stop_string", "length",
                                                                        "time_limit",  "cancelled",   "error"};

class MetricsWriter {
 public:
  template <typename Number>
  void Counter(std::string_view name, std::string_view help, Number value) {
    Head(name, help, "counter");
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }

  template <typename Number>
  void Gauge(std::string_view name, std::string_view help, Number value) {
    Head(name, help, "gauge");
    fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
  }

  void FinishedByReason(std::string_view name, std::string_view help,
                        const std::array<uint64_t, kFinishReasons>& counts) {
    Head(name, help, "counter");
    for (size_t i = 0; i < counts.size(); ++i) {
      fmt::format_to(std::back_inserter(text_), "{}{{reason=\"{}\"}} {}\n", name, kReasonLabels[i], counts[i]);
    }
  }

  template <typename Value>
  void ByDrafter(std::string_view name, std::string_view help, const std::vector<DrafterStats>& drafters, Value value) {
    Head(name, help, "counter");
    for (const DrafterStats& drafter : drafters) {
      fmt::format_to(std::back_inserter(text_), "{}{{drafter=\"{}\"}} {}\n", name, drafter.name, value(drafter));
    }
  }

  void Distribution(std::string_view name, std::string_view help, const Histogram& histogram) {
    Head(name, help, "histogram");
    uint64_t up_to_bound = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      up_to_bound += histogram.counts()[i];
      fmt::format_to(std::back_inserter(text_), "{}_bucket{{le=\"{}\"}} {}\n", name, histogram.bounds()[i],
                     up_to_bound);
    }
    fmt::format_to(std::back_inserter(text_), "{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                   histogram.count(), histogram.sum());
  }

  std::string Take() { return std::move(text_); }

 private:
  void Head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }

  std::string text_;
};

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
  out.Gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens per second, averaged over all requests",
            PerSecond(stats.prompt_tokens, stats.prompt_seconds));
  out.Gauge("llamacpp:predicted_tokens_seconds", "Generated tokens per second, averaged over all requests",
            PerSecond(stats.generated_tokens, stats.generate_seconds));
  out.Gauge("llamacpp:requests_processing", "Requests that run now", stats.running);
  out.Gauge("llamacpp:requests_deferred", "Requests that wait now", stats.queued);

  out.FinishedByReason("outrider_requests_finished_total", "Requests that ended, by why they ended", stats.finished);
  out.Counter("outrider_requests_refused_total", "Requests turned away because the queue was full", stats.refused);
  out.Counter("outrider_rows_total", "Rows decoded, over all steps", stats.rows);
  out.Distribution("outrider_first_token_seconds", "Time from submission to the first token",
                   stats.first_token_seconds);
  out.ByDrafter("outrider_draft_tokens_proposed_total", "Draft tokens verified, by drafter", stats.drafters,
                [](const DrafterStats& drafter) { return static_cast<double>(drafter.proposed); });
  out.ByDrafter("outrider_draft_tokens_accepted_total", "Draft tokens that were right, by drafter", stats.drafters,
                [](const DrafterStats& drafter) { return static_cast<double>(drafter.accepted); });
  out.ByDrafter("outrider_draft_seconds_total", "Time drafters took", stats.drafters,
                [](const DrafterStats& drafter) { return drafter.seconds; });
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
