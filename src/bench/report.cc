#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/embedded.h"
#include "bench/json_fields.h"

namespace outrider {
namespace {

// JSON has no NaN; four digits are enough for a picture.
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
                           {"low", Number(slice.speed_up_sure.low)},
                           {"high", Number(slice.speed_up_sure.high)},
                           {"p10", Number(slice.speed_up.p10)},
                           {"p90", Number(slice.speed_up.p90)},
                           {"count", slice.speed_up.count}});
    }
  }
  return speed_ups;
}

Json RequestsJson(const std::vector<BenchRecord>& records, const std::string& first) {
  std::map<BenchQuestion, double> plain;
  for (const BenchRecord& record : records) {
    if (record.variant == first && record.error.empty()) plain[record.question] = record.answer.TokensPerSecond();
  }
  Json requests = Json::array();
  for (const BenchRecord& record : records) {
    if (record.variant == first || !record.error.empty()) continue;
    const int drafted = CountOf(Field(record.answer.timings, "draft_n"));
    const int accepted = CountOf(Field(record.answer.timings, "draft_n_accepted"));
    const auto found = plain.find(record.question);
    const double of_plain = found == plain.end() ? 0 : found->second;
    const double speed = record.answer.TokensPerSecond();
    requests.push_back({{"variant", record.variant},
                        {"category", record.category},
                        {"prompt", record.question.prompt + 1},
                        {"acceptance", drafted > 0 ? Number(1.0 * accepted / drafted) : Json()},
                        {"speed_up", of_plain > 0 ? Number(speed / of_plain) : Json()},
                        {"tokens_per_second", Number(speed)}});
  }
  return requests;
}

// Steps by their rows. What a step of so many would bring is known as far as drafts were that long.
Json CurveJson(const BenchSummary& summary) {
  constexpr size_t kFewest = 5;  // steps that make a point
  Json curve = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    AcceptanceByPlace all;
    for (const auto& [drafter, by_place] : variant.by_place) all.Add(by_place);
    Json points = Json::array();
    double best = 0;
    for (const auto& [rows, ms] : variant.step_ms) {
      if (ms.size() < kFewest) continue;
      const double median = Quantile(ms, 0.5);
      double tokens = 1, survival = 1;
      for (int place = 0; place + 1 < rows; ++place) {
        survival *= all.Chance(static_cast<size_t>(place));
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

void AddPlaces(const BenchSummary& summary, Json* report) {
  constexpr uint64_t kFewest = 5;
  Json places = Json::array(), lengths = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const auto& [drafter, by_place] : variant.by_place) {
      for (size_t place = 0; by_place.Asked(place) >= kFewest; ++place) {
        places.push_back({{"variant", variant.name},
                          {"drafter", drafter},
                          {"place", place + 1},
                          {"chance", Number(by_place.Chance(place))},
                          {"asked", by_place.Asked(place)}});
      }
      for (size_t length = 0; length < by_place.lengths().size(); ++length) {
        const uint64_t count = by_place.lengths()[length];
        if (count == 0) continue;
        lengths.push_back({{"variant", variant.name}, {"drafter", drafter}, {"length", length}, {"count", count}});
      }
    }
  }
  (*report)["places"] = std::move(places);
  (*report)["lengths"] = std::move(lengths);
}

// An answer with many tokens that were foreseen and many that were not, and not too long to look at.
Json TimelineJson(const std::vector<BenchRecord>& records) {
  constexpr size_t kMostTokens = 160;
  constexpr int kStepsInALine = 12;
  const BenchRecord* best = nullptr;
  int most = 0;
  for (const BenchRecord& record : records) {
    const int accepted = CountOf(Field(record.answer.timings, "draft_n_accepted"));
    const int of_interest = std::min(accepted, record.answer.tokens - accepted);
    if (record.answer.provenance.is_array() && record.answer.provenance.size() <= kMostTokens && of_interest > most) {
      best = &record;
      most = of_interest;
    }
  }
  if (best == nullptr) return nullptr;
  const Json& provenance = best->answer.provenance;
  const std::vector<BenchStep> steps = StepsOf(best->answer);
  Json tokens = Json::array();
  size_t next = 0;
  double now = 0, line_start = 0;
  int line = 0, in_line = 0;
  const auto add = [&](int count, double ms) {
    for (int i = 0; i < count && next < provenance.size(); ++i, ++next) {
      const std::string drafter = TextOf(Field(provenance[next], "drafter"));
      tokens.push_back({{"text", TextOf(Field(provenance[next], "text"))},
                        {"drafter", drafter.empty() ? "nobody" : drafter},
                        {"line", line},
                        {"at", Number(now)},
                        {"start", Number(now - line_start + ms * i / count)},
                        {"end", Number(now - line_start + ms * (i + 1) / count)}});
    }
    now += ms;
    if (++in_line < kStepsInALine) return;
    in_line = 0;
    ++line;
    line_start = now;
  };
  add(1, 0);
  for (const BenchStep& step : steps) add(step.accepted + 1, step.ms);
  return {{"variant", best->variant}, {"prompt", best->question.prompt}, {"tokens", std::move(tokens)}};
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
  Json variants = Json::array(), speeds = Json::array(), parity = Json::array(), latency = Json::array();
  for (const BenchVariantSummary& variant : summary.variants) {
    variants.push_back(variant.name);
    const auto peak = heading.peak_bytes.find(variant.name);
    latency.push_back({{"variant", variant.name},
                       {"first_token_ms", Number(variant.first_token.median * 1000)},
                       {"first_token_p90_ms", Number(variant.first_token.p90 * 1000)},
                       {"gap_ms", Number(variant.gap_median * 1000)},
                       {"gap_p90_ms", Number(variant.gap_p90 * 1000)},
                       {"gap_p99_ms", Number(variant.gap_p99 * 1000)},
                       {"joules_per_token", variant.joules_per_token < 0 ? Json() : Number(variant.joules_per_token)},
                       {"peak_mb", peak == heading.peak_bytes.end() ? Json() : Number(peak->second / 1e6)},
                       {"failed", variant.failed}});
    if (variant.compared == 0) continue;
    const auto found = heading.explained.find(variant.name);
    parity.push_back({{"variant", variant.name},
                      {"compared", variant.compared},
                      {"identical", variant.identical},
                      {"first", found == heading.explained.end() ? "" : found->second}});
  }
  report["variants"] = std::move(variants);
  report["speed_ups"] = SpeedUpsJson(summary, &speeds);
  report["speeds"] = std::move(speeds);
  report["parity"] = std::move(parity);
  report["latency"] = std::move(latency);
  report["requests"] = RequestsJson(records, summary.variants.empty() ? std::string() : summary.variants.front().name);
  report["curve"] = CurveJson(summary);
  report["stages"] = StagesJson(summary);
  AddPlaces(summary, &report);
  report["timeline"] = TimelineJson(records);
  Json& predicted = report["predictions"] = Json::array();
  for (const BenchPrediction& prediction : heading.predictions) {
    predicted.push_back({{"variant", prediction.variant},
                         {"predicted", Number(prediction.predicted)},
                         {"measured", Number(prediction.measured)}});
  }
  return report;
}

std::string ReportPage(const Json& report) {
  std::string page(EmbeddedReportPage());
  // To a page "<" may be the end of the script, or of the page.
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
