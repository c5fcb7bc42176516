#include "bench/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>

#include "bench/json_fields.h"

namespace outrider {
namespace {

using Answers = std::map<BenchQuestion, const BenchRecord*>;

// What slices of all records there are: categories, and whatever was varied.
std::vector<std::pair<std::string, std::function<bool(const BenchRecord&)>>> SlicesOf(
    const std::vector<BenchRecord>& records) {
  std::vector<std::pair<std::string, std::function<bool(const BenchRecord&)>>> slices;
  slices.emplace_back("all", [](const BenchRecord&) { return true; });
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
      slices.emplace_back(category, [category](const BenchRecord& record) { return record.category == category; });
    }
  }
  const auto add = [&](const auto& values, const char* name, auto BenchQuestion::*field) {
    if (values.size() < 2) return;
    for (const auto value : values) {
      slices.emplace_back(fmt::format("{} {}", name, value),
                          [field, value](const BenchRecord& record) { return record.question.*field == value; });
    }
  };
  add(temperatures, "temperature", &BenchQuestion::temperature);
  add(contexts, "context", &BenchQuestion::context);
  add(concurrencies, "concurrency", &BenchQuestion::concurrency);
  return slices;
}

std::string Span(double low, double high) {
  return std::isnan(low) ? "-" : fmt::format("{:.2f} to {:.2f}", low, high);
}

size_t CommonBytes(const std::string& a, const std::string& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

void AddServersOwn(const BenchAnswer& answer, BenchVariantSummary* summary) {
  const Json& drafters = Field(answer.timings, "drafters");
  if (drafters.is_object()) {
    for (const auto& [name, drafter] : drafters.items()) {
      auto& [proposed, accepted] = summary->drafters[name];
      proposed += static_cast<uint64_t>(CountOf(Field(drafter, "proposed")));
      accepted += static_cast<uint64_t>(CountOf(Field(drafter, "accepted")));
    }
  } else if (const int drafted = CountOf(Field(answer.timings, "draft_n")); drafted > 0) {
    auto& [proposed, accepted] = summary->drafters["draft"];
    proposed += static_cast<uint64_t>(drafted);
    accepted += static_cast<uint64_t>(CountOf(Field(answer.timings, "draft_n_accepted")));
  }
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
    if (step.drafted > 0) summary->by_place[step.drafter].Observe(step.drafted, step.accepted);
  }
}

}  // namespace

bool BenchVariantSummary::Differs(const BenchQuestion& question) const {
  return std::any_of(differences.begin(), differences.end(), [&](const BenchDifference& difference) {
    BenchQuestion same = question;
    same.turn = difference.question.turn;
    return same == difference.question && question.turn >= difference.question.turn;
  });
}

BenchSummary SummariseRecords(const std::vector<BenchRecord>& records) {
  BenchSummary summary;
  std::vector<std::string> names;
  std::map<std::string, Answers> answers;
  for (const BenchRecord& record : records) {
    if (!answers.contains(record.variant)) names.push_back(record.variant);
    Answers& of_variant = answers[record.variant];
    if (record.error.empty()) of_variant[record.question] = &record;
  }
  const auto slices = SlicesOf(records);
  for (const std::string& name : names) {
    BenchVariantSummary variant;
    variant.name = name;
    std::vector<double> first_tokens, gaps;
    double joules = 0;
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
      AddServersOwn(answer, &variant);
    }
    variant.first_token = Summarise(first_tokens);
    variant.gap_median = Quantile(gaps, 0.5);
    variant.gap_p90 = Quantile(gaps, 0.9);
    variant.gap_p99 = Quantile(gaps, 0.99);
    if (joules > 0 && variant.tokens > 0) variant.joules_per_token = joules / static_cast<double>(variant.tokens);

    const Answers& own = answers[name];
    const Answers& plain = answers[names.front()];
    for (const auto& [slice_name, holds] : slices) {
      std::vector<double> speeds, ratios, prompt_tokens;
      std::vector<int> prompts;
      for (const auto& [question, record] : own) {
        const double speed = record->answer.TokensPerSecond();
        if (!holds(*record) || speed <= 0) continue;
        speeds.push_back(speed);
        prompt_tokens.push_back(record->answer.prompt_tokens);
        const auto found = plain.find(question);
        const double of_plain = found == plain.end() ? 0 : found->second->answer.TokensPerSecond();
        if (of_plain <= 0) continue;
        ratios.push_back(speed / of_plain);
        prompts.push_back(question.prompt);
      }
      variant.slices.push_back({slice_name, Quantile(prompt_tokens, 0.5), Summarise(speeds), Summarise(ratios),
                                MedianInterval(ratios, prompts)});
    }
    for (const auto& [question, record] : own) {
      const auto found = plain.find(question);
      if (name == names.front() || found == plain.end()) continue;
      if (variant.Differs(question)) continue;  // in an earlier turn: another conversation since
      ++variant.compared;
      const std::string &text = record->answer.text, &of_plain = found->second->answer.text;
      if (text == of_plain) {
        ++variant.identical;
      } else {
        variant.differences.push_back({question, CommonBytes(text, of_plain)});
      }
    }
    summary.variants.push_back(std::move(variant));
  }
  return summary;
}

std::string SummaryTable(const BenchSummary& summary) {
  std::string out;
  if (summary.variants.empty()) return "nothing was measured\n";
  const std::string& first = summary.variants.front().name;
  size_t width = 8, slice_width = 8;
  for (const BenchVariantSummary& variant : summary.variants) {
    width = std::max(width, variant.name.size());
    for (const BenchSlice& slice : variant.slices) slice_width = std::max(slice_width, slice.name.size());
  }
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{:<{}}  {:<{}}  {:>8}  {:>8}  {:>8}  {:>14}  {:>14}\n", "variant", width, "prompts", slice_width,
                 "tokens", "t/s", "speed-up", "95 % sure", "p10 to p90");
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const BenchSlice& slice : variant.slices) {
      if (slice.speed.count == 0) continue;
      fmt::format_to(to, "{:<{}}  {:<{}}  {:>8.0f}  {:>8.1f}", variant.name, width, slice.name, slice_width,
                     slice.prompt_tokens, slice.speed.median);
      if (variant.name != first && slice.speed_up.count > 0) {
        fmt::format_to(to, "  {:>7.2f}x  {:>14}  {:>14}", slice.speed_up.median,
                       Span(slice.speed_up_sure.low, slice.speed_up_sure.high),
                       Span(slice.speed_up.p10, slice.speed_up.p90));
      }
      out += '\n';
    }
  }
  out += '\n';
  for (const BenchVariantSummary& variant : summary.variants) {
    if (variant.answered == 0) {
      fmt::format_to(to, "{:<{}}  no answers: {} failed\n", variant.name, width, variant.failed);
      continue;
    }
    fmt::format_to(to, "{:<{}}  first token {:.0f} ms (p90 {:.0f}), between pieces {:.1f} ms (p90 {:.1f}, p99 {:.1f})",
                   variant.name, width, variant.first_token.median * 1000, variant.first_token.p90 * 1000,
                   variant.gap_median * 1000, variant.gap_p90 * 1000, variant.gap_p99 * 1000);
    if (variant.joules_per_token >= 0) fmt::format_to(to, ", {:.2f} J a token", variant.joules_per_token);
    if (variant.failed > 0) fmt::format_to(to, ", {} of {} failed", variant.failed, variant.failed + variant.answered);
    out += '\n';
    for (const auto& [drafter, counts] : variant.drafters) {
      const auto& [proposed, accepted] = counts;
      if (proposed == 0) continue;
      fmt::format_to(to, "{:<{}}    {}: {} of {} tokens right ({:.0f} %)\n", "", width, drafter, accepted, proposed,
                     100.0 * static_cast<double>(accepted) / static_cast<double>(proposed));
    }
  }
  out += '\n';
  for (const BenchVariantSummary& variant : summary.variants) {
    if (variant.name == first) continue;
    if (variant.compared == 0) {
      fmt::format_to(to, "{:<{}}  no answers to compare\n", variant.name, width);
      continue;
    }
    if (variant.differences.empty()) {
      fmt::format_to(to, "{:<{}}  text identical to '{}' in all {} answers\n", variant.name, width, first,
                     variant.compared);
      continue;
    }
    const BenchDifference& difference = variant.differences.front();
    fmt::format_to(to, "{:<{}}  text differs from '{}' in {} of {} answers, first for prompt {} after {} bytes\n",
                   variant.name, width, first, variant.differences.size(), variant.compared,
                   difference.question.prompt + 1, difference.position);
  }
  return out;
}

}  // namespace outrider
