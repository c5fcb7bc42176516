#include "bench/record.h"

#include <algorithm>
#include <cmath>

#include "bench/json_fields.h"
#include "bench/json_lines.h"

namespace outrider {
namespace {

double Rounded(double seconds) {
  return std::round(seconds * 1e6) / 1e6;
}

std::vector<double> NumbersOf(const Json& json) {
  std::vector<double> numbers;
  if (json.is_array()) {
    for (const Json& each : json) numbers.push_back(NumberOf(each));
  }
  return numbers;
}

BenchHeading ReadHeading(const Json& json) {
  BenchHeading heading = {TextOf(Field(json, "title")), TextOf(Field(json, "date")), TextOf(Field(json, "machine")),
                          TextOf(Field(json, "version")), TextOf(Field(json, "command"))};
  const Json &explained = Field(json, "explained"), &peaks = Field(json, "peak_bytes");
  if (explained.is_object()) {
    for (const auto& [variant, sentence] : explained.items()) heading.explained[variant] = TextOf(sentence);
  }
  if (peaks.is_object()) {
    for (const auto& [variant, bytes] : peaks.items()) heading.peak_bytes[variant] = NumberOf(bytes);
  }
  const Json& predictions = Field(json, "predictions");
  if (!predictions.is_array()) return heading;
  for (const Json& each : predictions) {
    heading.predictions.push_back(
        {TextOf(Field(each, "variant")), NumberOf(Field(each, "predicted")), NumberOf(Field(each, "measured"))});
  }
  return heading;
}

Result<BenchRecord> ReadRecord(const Json& json) {
  BenchRecord record;
  record.variant = TextOf(Field(json, "variant"));
  if (record.variant.empty()) return InvalidArgument("not a result of outrider bench");
  record.category = TextOf(Field(json, "category"));
  record.error = TextOf(Field(json, "error"));
  record.question = {CountOf(Field(json, "prompt")),  CountOf(Field(json, "turn")),
                     CountOf(Field(json, "run")),     NumberOf(Field(json, "temperature")),
                     CountOf(Field(json, "context")), CountOf(Field(json, "concurrency"))};
  BenchAnswer& answer = record.answer;
  answer.text = TextOf(Field(json, "text"));
  answer.finish_reason = TextOf(Field(json, "finish_reason"));
  answer.prompt_tokens = CountOf(Field(json, "prompt_tokens"));
  answer.tokens = CountOf(Field(json, "tokens"));
  answer.seconds = NumberOf(Field(json, "seconds"));
  answer.arrivals = NumbersOf(Field(json, "arrivals"));
  answer.timings = Field(json, "timings");
  answer.provenance = Field(json, "provenance");
  if (const Json& joules = Field(json, "joules"); joules.is_number()) record.joules = joules.get<double>();
  return record;
}

}  // namespace

std::vector<BenchStep> StepsOf(const BenchAnswer& answer) {
  std::vector<BenchStep> steps;
  const Json& list = Field(answer.timings, "steps");
  if (!list.is_array()) return steps;
  for (const Json& each : list) {
    if (!each.is_array() || each.size() < 4) continue;  // servers since 0.1 add the rejected tokens
    BenchStep step = {TextOf(each[0]), CountOf(each[1]), CountOf(each[2]), NumberOf(each[3])};
    constexpr int kMaxDrafted = 1024;  // more is not a step of any real server
    if (step.drafted > kMaxDrafted) continue;
    step.accepted = std::min(step.accepted, step.drafted);
    steps.push_back(std::move(step));
  }
  return steps;
}

Json RecordJson(const BenchRecord& record) {
  const BenchQuestion& question = record.question;
  Json json = {{"variant", record.variant},   {"category", record.category},
               {"prompt", question.prompt},   {"turn", question.turn},
               {"run", question.run},         {"temperature", question.temperature},
               {"context", question.context}, {"concurrency", question.concurrency}};
  if (!record.error.empty()) {
    json["error"] = record.error;
    return json;
  }
  const BenchAnswer& answer = record.answer;
  json["text"] = answer.text;
  json["finish_reason"] = answer.finish_reason;
  json["prompt_tokens"] = answer.prompt_tokens;
  json["tokens"] = answer.tokens;
  json["seconds"] = Rounded(answer.seconds);
  json["first_token_seconds"] = Rounded(answer.FirstTokenSeconds());
  json["tokens_per_second"] = Rounded(answer.TokensPerSecond());
  Json& arrivals = json["arrivals"] = Json::array();
  for (const double seconds : answer.arrivals) arrivals.push_back(Rounded(seconds));
  if (!answer.timings.is_null()) json["timings"] = answer.timings;
  if (!answer.provenance.is_null()) json["provenance"] = answer.provenance;
  if (record.joules >= 0) json["joules"] = Rounded(record.joules);
  return json;
}

Json HeadingJson(const BenchHeading& heading) {
  Json predictions = Json::array();
  for (const BenchPrediction& each : heading.predictions) {
    predictions.push_back({{"variant", each.variant}, {"predicted", each.predicted}, {"measured", each.measured}});
  }
  return {{"bench",
           {{"title", heading.title},
            {"date", heading.date},
            {"machine", heading.machine},
            {"version", heading.version},
            {"command", heading.command},
            {"explained", heading.explained},
            {"peak_bytes", heading.peak_bytes},
            {"predictions", std::move(predictions)}}}};
}

Result<std::vector<BenchRecord>> ParseRecords(std::string_view lines, BenchHeading* heading) {
  std::vector<BenchRecord> records;
  const Status status = ForEachJsonLine(lines, [&](const Json& json) -> Status {
    if (const Json& bench = Field(json, "bench"); bench.is_object()) {
      if (heading != nullptr) *heading = ReadHeading(bench);
      return {};
    }
    auto record = ReadRecord(json);
    if (!record.ok()) return record.status();
    records.push_back(std::move(*record));
    return {};
  });
  if (!status.ok()) return status;
  return records;
}

}  // namespace outrider
