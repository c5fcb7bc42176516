#include "bench/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "bench/json_fields.h"

namespace outrider {
namespace {

using Answers = std::map<BenchQuestion, const BenchRecord*>;  // those that did not fail

struct Slice {
  std::string name;
  std::function<bool(const BenchRecord&)> contains;
};

// One slice with everything, one for each category, and one for each value of whatever was varied.
std::vector<Slice> SlicesOf(const std::vector<BenchRecord>& records) {
  std::vector<Slice> slices = {{"all", [](const BenchRecord&) { return true; }}};
  std::vector<std::string> categories;
  std::set<double> temperatures;
  std::set<int> contexts, concurrencies;
  for (const BenchRecord& record : records) {
    if (std::find(categories.begin(), categories.end(), record.category) == categories.end()) {
      categories.push_back(record.category);
    }
    temperatures.insert(record.question.temperature);
    contexts.insert(record.question.context);
    concurrencies.insert(record.question.concurrency);
  }
  if (categories.size() > 1) {
    for (const std::string& category : categories) {
      slices.push_back({category, [category](const BenchRecord& record) { return record.category == category; }});
    }
  }
  const auto add = [&](const auto& values, const char* name, auto BenchQuestion::*field) {
    if (values.size() < 2) return;
    for (const auto value : values) {
      slices.push_back({fmt::format("{} {}", name, value),
                        [field, value](const BenchRecord& record) { return record.question.*field == value; }});
    }
  };
  add(temperatures, "temperature", &BenchQuestion::temperature);
  add(contexts, "context", &BenchQuestion::context);
  add(concurrencies, "concurrency", &BenchQuestion::concurrency);
  return slices;
}

size_t CommonBytes(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// llama.cpp's servers report only the sum over all drafters.
void AddDrafters(const Json& timings, BenchVariantSummary* summary) {
  const Json& drafters = Field(timings, "drafters");
  if (drafters.is_object()) {
    for (const auto& [name, drafter] : drafters.items()) {
      auto& [proposed, accepted] = summary->drafters[name];
      proposed += static_cast<uint64_t>(CountOf(Field(drafter, "proposed")));
      accepted += static_cast<uint64_t>(CountOf(Field(drafter, "accepted")));
    }
  } else if (const int drafted = CountOf(Field(timings, "draft_n")); drafted > 0) {
    auto& [proposed, accepted] = summary->drafters["draft"];
    proposed += static_cast<uint64_t>(drafted);
    accepted += static_cast<uint64_t>(CountOf(Field(timings, "draft_n_accepted")));
  }
}

// Adds what the server itself reports about an answer.
void AddTimings(const BenchAnswer& answer, BenchVariantSummary* summary) {
  AddDrafters(answer.timings, summary);
  const Json& stages = Field(answer.timings, "stages");
  if (stages.is_object()) {
    double known = 0;
    for (const auto& [name, ms] : stages.items()) {
      const std::string stage = name.substr(0, name.rfind("_ms"));
      summary->stages[stage] += NumberOf(ms) / 1000;
      known += NumberOf(ms) / 1000;
    }
    summary->stages["wait"] += std::max(0.0, answer.seconds - known);
  }
  for (const BenchStep& step : StepsOf(answer)) {
    summary->step_ms[step.drafted + 1].push_back(step.ms);
    if (step.drafted > 0) summary->by_position[step.drafter].Observe(step.drafted, step.accepted);
  }
}

// Everything about one variant that needs no other variant.
BenchVariantSummary SummariseVariant(const std::string& name, const std::vector<BenchRecord>& records) {
  BenchVariantSummary variant;
  variant.name = name;
  std::vector<double> first_tokens, gaps;
  double joules = 0;  // -1 once the energy of one answer is not known
  for (const BenchRecord& record : records) {
    if (record.variant != name) continue;
    if (!record.error.empty()) {
      ++variant.failed;
      continue;
    }
    ++variant.answered;
    const BenchAnswer& answer = record.answer;
    variant.tokens += static_cast<uint64_t>(answer.tokens);
    first_tokens.push_back(answer.FirstTokenSeconds());
    for (size_t i = 1; i < answer.arrivals.size(); ++i) gaps.push_back(answer.arrivals[i] - answer.arrivals[i - 1]);
    joules = record.joules < 0 || joules < 0 ? -1 : joules + record.joules;
    AddTimings(answer, &variant);
  }
  variant.first_token = Summarise(first_tokens);
  variant.gap_median = Quantile(gaps, 0.5);
  variant.gap_p90 = Quantile(gaps, 0.9);
  variant.gap_p99 = Quantile(gaps, 0.99);
  if (joules > 0 && variant.tokens > 0) variant.joules_per_token = joules / static_cast<double>(variant.tokens);
  return variant;
}

BenchSlice SummariseSlice(const Slice& slice, const Answers& own, const Answers& first) {
  std::vector<double> speeds, ratios, prompt_tokens;
  std::vector<int> prompts;  // of the ratios
  for (const auto& [question, record] : own) {
    const double speed = record->answer.TokensPerSecond();
    if (!slice.contains(*record) || speed <= 0) continue;
    speeds.push_back(speed);
    prompt_tokens.push_back(record->answer.prompt_tokens);
    const auto found = first.find(question);
    const double first_speed = found == first.end() ? 0 : found->second->answer.TokensPerSecond();
    if (first_speed <= 0) continue;
    ratios.push_back(speed / first_speed);
    prompts.push_back(question.prompt);
  }
  return {slice.name, Quantile(prompt_tokens, 0.5), Summarise(speeds), Summarise(ratios),
          MedianInterval(ratios, prompts)};
}

void CompareText(const BenchRecord& record, const BenchRecord& expected, TextComparison* comparison) {
  // Once the answers to one turn differ, the later turns are another conversation.
  if (comparison->Differs(record.question)) return;
  ++comparison->compared;
  const std::string &text = record.answer.text, &expected_text = expected.answer.text;
  if (text == expected_text) {
    ++comparison->identical;
  } else {
    comparison->differences.push_back({record.question, CommonBytes(text, expected_text)});
  }
}

TextComparison CompareWithFirst(const Answers& own, const Answers& first) {
  TextComparison comparison;
  for (const auto& [question, record] : own) {
    const auto found = first.find(question);
    if (found != first.end()) CompareText(*record, *found->second, &comparison);
  }
  return comparison;
}

TextComparison CompareWithConcurrency(const Answers& own, int concurrency) {
  TextComparison comparison;
  for (const auto& [question, record] : own) {
    BenchQuestion same = question;
    same.concurrency = concurrency;
    const auto found = own.find(same);
    if (question.concurrency != concurrency && found != own.end()) CompareText(*record, *found->second, &comparison);
  }
  return comparison;
}

}  // namespace

bool TextComparison::Differs(const BenchQuestion& question) const {
  return std::any_of(differences.begin(), differences.end(), [&](const BenchDifference& difference) {
    BenchQuestion same = question;
    same.turn = difference.question.turn;
    return same == difference.question && question.turn >= difference.question.turn;
  });
}

BenchSummary SummariseRecords(const std::vector<BenchRecord>& records) {
  std::vector<std::string> names;
  std::map<std::string, Answers> answers;
  int lowest_concurrency = std::numeric_limits<int>::max();
  for (const BenchRecord& record : records) {
    if (!answers.contains(record.variant)) names.push_back(record.variant);
    Answers& of_variant = answers[record.variant];
    if (record.error.empty()) of_variant[record.question] = &record;
    lowest_concurrency = std::min(lowest_concurrency, record.question.concurrency);
  }
  const std::vector<Slice> slices = SlicesOf(records);
  BenchSummary summary;
  for (const std::string& name : names) {
    const Answers &own = answers[name], &first = answers[names.front()];
    BenchVariantSummary variant = SummariseVariant(name, records);
    for (const Slice& slice : slices) variant.slices.push_back(SummariseSlice(slice, own, first));
    if (name != names.front()) variant.with_first = CompareWithFirst(own, first);
    variant.with_lowest_concurrency = CompareWithConcurrency(own, lowest_concurrency);
    summary.variants.push_back(std::move(variant));
  }
  return summary;
}

}  // namespace outrider
