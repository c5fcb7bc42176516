#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/embedded.h"
#include "bench/json_fields.h"

namespace outrider {
namespace {

// JSON has no NaN; four decimal places are enough for a plot.
Json Number(double value) {
  if (!std::isfinite(value)) return nullptr;
  return value == 0 ? Json(0) : Json(std::round(value * 1e4) / 1e4);
}

Json SpeedUpsJson(const BenchSummary& summary, Json* speeds) {
  Json speed_ups = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const BenchSlice& slice : variant.slices) {
      if (slice.speed.count == 0) continue;
      speeds->push_back({{"variant", variant.name},
                         {"slice", slice.name},
                         {"prompt_tokens", Number(slice.prompt_tokens)},
                         {"median", Number(slice.speed.median)},
                         {"count", slice.speed.count}});
      if (&variant == &summary.variants.front() || slice.speed_up.count == 0) continue;
      speed_ups.push_back({{"variant", variant.name},
                           {"slice", slice.name},
                           {"median", Number(slice.speed_up.median)},
                           {"low", Number(slice.speed_up_interval.low)},
                           {"high", Number(slice.speed_up_interval.high)},
                           {"p10", Number(slice.speed_up.p10)},
                           {"p90", Number(slice.speed_up.p90)},
                           {"count", slice.speed_up.count}});
    }
  }
  return speed_ups;
}

Json RequestsJson(const std::vector<BenchRecord>& records, const std::string& first) {
  std::map<BenchQuestion, double> first_speeds;
  for (const BenchRecord& record : records) {
    if (record.variant != first || !record.error.empty()) continue;
    first_speeds[record.question] = record.answer.TokensPerSecond();
  }
  Json requests = Json::array();
  for (const BenchRecord& record : records) {
    if (record.variant == first || !record.error.empty()) continue;
    const int drafted = CountOf(Field(record.answer.timings, "draft_n"));
    const int accepted = CountOf(Field(record.answer.timings, "draft_n_accepted"));
    const auto found = first_speeds.find(record.question);
    const double first_speed = found == first_speeds.end() ? 0 : found->second;
    const double speed = record.answer.TokensPerSecond();
    requests.push_back({{"variant", record.variant},
                        {"category", record.category},
                        {"prompt", record.question.prompt + 1},
                        {"acceptance", drafted > 0 ? Number(1.0 * accepted / drafted) : Json()},
                        {"speed_up", first_speed > 0 ? Number(speed / first_speed) : Json()},
                        {"tokens_per_second", Number(speed)}});
  }
  return requests;
}

// The time of steps by their rows, and the tokens per second that drafts of that length would give with the measured
// acceptance; null where no draft was that long.
Json CurveJson(const BenchSummary& summary) {
  constexpr size_t kMinSteps = 5;  // for a point of the plot
  Json curve = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    AcceptanceByPosition all;
    for (const auto& [drafter, by_position] : variant.by_position) all.Add(by_position);
    Json points = Json::array();
    double best = 0;
    for (const auto& [rows, ms] : variant.step_ms) {
      if (ms.size() < kMinSteps) continue;
      const double median = Quantile(ms, 0.5);
      double tokens = 1, survival = 1;
      for (int position = 0; position + 1 < rows; ++position) {
        survival *= all.Probability(static_cast<size_t>(position));
        tokens += survival;
      }
      const double speed = tokens / median * 1000;
      if (std::isfinite(speed)) best = std::max(best, speed);
      points.push_back({{"variant", variant.name},
                        {"rows", rows},
                        {"ms", Number(median)},
                        {"low", Number(Quantile(ms, 0.25))},
                        {"high", Number(Quantile(ms, 0.75))},
                        {"count", ms.size()},
                        {"tokens_per_second", Number(speed)}});
    }
    for (Json& point : points) {
      point["best"] = points.size() > 1 && point["tokens_per_second"] == Number(best);
      curve.push_back(std::move(point));
    }
  }
  return curve;
}

Json StagesJson(const BenchSummary& summary) {
  static constexpr const char* kOrder[] = {"prefill", "draft", "verify", "sample", "rollback", "wait"};
  Json stages = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    int order = 0;
    for (const char* stage : kOrder) {
      const auto found = variant.stages.find(stage);
      if (found == variant.stages.end() || variant.tokens == 0) continue;
      stages.push_back({{"variant", variant.name},
                        {"stage", stage},
                        {"order", order++},
                        {"ms", Number(found->second * 1000 / static_cast<double>(variant.tokens))}});
    }
  }
  return stages;
}

void AddPositions(const BenchSummary& summary, Json* report) {
  constexpr uint64_t kMinObservations = 5;
  Json positions = Json::array(), lengths = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const auto& [drafter, by_position] : variant.by_position) {
      for (size_t position = 0; by_position.Observations(position) >= kMinObservations; ++position) {
        positions.push_back({{"variant", variant.name},
                             {"drafter", drafter},
                             {"position", position + 1},
                             {"probability", Number(by_position.Probability(position))},
                             {"observations", by_position.Observations(position)}});
      }
      for (size_t length = 0; length < by_position.lengths().size(); ++length) {
        const uint64_t count = by_position.lengths()[length];
        if (count == 0) continue;
        lengths.push_back({{"variant", variant.name}, {"drafter", drafter}, {"length", length}, {"count", count}});
      }
    }
  }
  (*report)["positions"] = std::move(positions);
  (*report)["lengths"] = std::move(lengths);
}

// The answer that shows best what drafting does: many tokens that drafters proposed and many that they did not, and
// short enough to be drawn. Null if no answer has both.
const BenchRecord* AnswerForTimeline(const std::vector<BenchRecord>& records) {
  constexpr size_t kMaxTokens = 160;
  const BenchRecord* best = nullptr;
  int best_score = 0;
  for (const BenchRecord& record : records) {
    const int accepted = CountOf(Field(record.answer.timings, "draft_n_accepted"));
    const int score = std::min(accepted, record.answer.tokens - accepted);
    const Json& provenance = record.answer.provenance;
    if (provenance.is_array() && provenance.size() <= kMaxTokens && score > best_score) {
      best = &record;
      best_score = score;
    }
  }
  return best;
}

Json TimelineJson(const BenchRecord& record) {
  constexpr int kStepsPerLine = 12;
  const Json& provenance = record.answer.provenance;
  Json tokens = Json::array();
  size_t next = 0;
  double now = 0, line_start = 0;  // ms since the first token
  int line = 0, steps_in_line = 0;
  const auto add_step = [&](int count, double ms) {
    for (int i = 0; i < count && next < provenance.size(); ++i, ++next) {
      const std::string drafter = TextOf(Field(provenance[next], "drafter"));
      tokens.push_back({{"text", TextOf(Field(provenance[next], "text"))},
                        {"drafter", drafter.empty() ? "none" : drafter},
                        {"line", line},
                        {"at", Number(now)},
                        {"start", Number(now - line_start + ms * i / count)},
                        {"end", Number(now - line_start + ms * (i + 1) / count)}});
    }
    now += ms;
    if (++steps_in_line < kStepsPerLine) return;
    steps_in_line = 0;
    ++line;
    line_start = now;
  };
  add_step(1, 0);  // the first token comes with the prompt
  for (const BenchStep& step : StepsOf(record.answer)) add_step(step.accepted + 1, step.ms);
  return {{"variant", record.variant}, {"prompt", record.question.prompt}, {"tokens", std::move(tokens)}};
}

Json LatencyJson(const BenchVariantSummary& variant, const BenchHeading& heading) {
  const auto peak = heading.peak_bytes.find(variant.name);
  return {{"variant", variant.name},
          {"first_token_ms", Number(variant.first_token.median * 1000)},
          {"first_token_p90_ms", Number(variant.first_token.p90 * 1000)},
          {"gap_ms", Number(variant.gap_median * 1000)},
          {"gap_p90_ms", Number(variant.gap_p90 * 1000)},
          {"gap_p99_ms", Number(variant.gap_p99 * 1000)},
          {"joules_per_token", variant.joules_per_token < 0 ? Json() : Number(variant.joules_per_token)},
          {"peak_mb", peak == heading.peak_bytes.end() ? Json() : Number(peak->second / 1e6)},
          {"failed", variant.failed}};
}

void AddTextComparisons(const BenchSummary& summary, const BenchHeading& heading, Json* report) {
  Json parity = Json::array(), concurrency_parity = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    if (const TextComparison& texts = variant.with_first; texts.compared > 0) {
      const auto found = heading.explained.find(variant.name);
      parity.push_back({{"variant", variant.name},
                        {"compared", texts.compared},
                        {"identical", texts.identical},
                        {"first", found == heading.explained.end() ? "" : found->second}});
    }
    if (const TextComparison& texts = variant.with_lowest_concurrency; texts.compared > 0) {
      concurrency_parity.push_back(
          {{"variant", variant.name}, {"compared", texts.compared}, {"identical", texts.identical}});
    }
  }
  (*report)["parity"] = std::move(parity);
  (*report)["concurrency_parity"] = std::move(concurrency_parity);
}

void Replace(std::string* page, std::string_view mark, std::string_view text) {
  const size_t at = page->find(mark);
  if (at != page->npos) page->replace(at, mark.size(), text);
}

}  // namespace

Json ReportJson(const BenchHeading& heading, const std::vector<BenchRecord>& records, const BenchSummary& summary) {
  Json report = {{"title", heading.title},
                 {"date", heading.date},
                 {"machine", heading.machine},
                 {"version", heading.version},
                 {"command", heading.command}};
  Json variants = Json::array(), speeds = Json::array(), latency = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    variants.push_back(variant.name);
    latency.push_back(LatencyJson(variant, heading));
  }
  report["variants"] = std::move(variants);
  report["speed_ups"] = SpeedUpsJson(summary, &speeds);
  report["speeds"] = std::move(speeds);
  report["latency"] = std::move(latency);
  AddTextComparisons(summary, heading, &report);
  report["requests"] = RequestsJson(records, summary.variants.empty() ? std::string() : summary.variants.front().name);
  report["curve"] = CurveJson(summary);
  report["stages"] = StagesJson(summary);
  AddPositions(summary, &report);
  const BenchRecord* shown = AnswerForTimeline(records);
  report["timeline"] = shown == nullptr ? Json() : TimelineJson(*shown);
  Json& predictions = report["predictions"] = Json::array();
  for (const BenchPrediction& prediction : heading.predictions) {
    predictions.push_back({{"variant", prediction.variant},
                           {"predicted", Number(prediction.predicted)},
                           {"measured", Number(prediction.measured)}});
  }
  return report;
}

std::string ReportPage(const Json& report) {
  std::string page(EmbeddedReportPage());
  // In a page, "<" could begin a tag that ends the script.
  std::string data = DumpJson(report);
  for (size_t at = 0; (at = data.find('<', at)) != data.npos;) data.replace(at, 1, "\\u003c");
  Replace(&page, "/*DATA*/", data);
  Replace(&page, "/*PLOTS*/", EmbeddedPlots());
  Replace(&page, "/*VEGA*/",
          EmbeddedVega().empty()
              ? "function vegaEmbed(place) { place.textContent = 'This build has no plotting library: "
                "build with ./run or ./test.'; }"
              : EmbeddedVega());
  return page;
}

}  // namespace outrider
