#include "bench/summary_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace outrider {
namespace {

std::string Range(double low, double high) {
  return std::isnan(low) ? "-" : fmt::format("{:.2f} to {:.2f}", low, high);
}

// `width` in all of these is that of the column with the variants' names.
void AddSpeeds(const BenchSummary& summary, size_t width, std::string* out) {
  size_t slice_width = 8;
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const BenchSlice& slice : variant.slices) slice_width = std::max(slice_width, slice.name.size());
  }
  const auto to = std::back_inserter(*out);
  fmt::format_to(to, "{:<{}}  {:<{}}  {:>8}  {:>8}  {:>8}  {:>14}  {:>14}\n", "variant", width, "prompts", slice_width,
                 "tokens", "t/s", "speed-up", "95 % interval", "p10 to p90");
  for (const BenchVariantSummary& variant : summary.variants) {
    for (const BenchSlice& slice : variant.slices) {
      if (slice.speed.count == 0) continue;
      fmt::format_to(to, "{:<{}}  {:<{}}  {:>8.0f}  {:>8.1f}", variant.name, width, slice.name, slice_width,
                     slice.prompt_tokens, slice.speed.median);
      if (&variant != &summary.variants.front() && slice.speed_up.count > 0) {
        fmt::format_to(to, "  {:>7.2f}x  {:>14}  {:>14}", slice.speed_up.median,
                       Range(slice.speed_up_interval.low, slice.speed_up_interval.high),
                       Range(slice.speed_up.p10, slice.speed_up.p90));
      }
      *out += '\n';
    }
  }
}

void AddLatencyAndDrafters(const BenchVariantSummary& variant, size_t width, std::string* out) {
  const auto to = std::back_inserter(*out);
  if (variant.answered == 0) {
    fmt::format_to(to, "{:<{}}  no answers: {} failed\n", variant.name, width, variant.failed);
    return;
  }
  fmt::format_to(to, "{:<{}}  first token {:.0f} ms (p90 {:.0f}), between pieces {:.1f} ms (p90 {:.1f}, p99 {:.1f})",
                 variant.name, width, variant.first_token.median * 1000, variant.first_token.p90 * 1000,
                 variant.gap_median * 1000, variant.gap_p90 * 1000, variant.gap_p99 * 1000);
  if (variant.joules_per_token >= 0) fmt::format_to(to, ", {:.2f} J per token", variant.joules_per_token);
  if (variant.failed > 0) fmt::format_to(to, ", {} of {} failed", variant.failed, variant.failed + variant.answered);
  *out += '\n';
  for (const auto& [drafter, counts] : variant.drafters) {
    const auto& [proposed, accepted] = counts;
    if (proposed == 0) continue;
    fmt::format_to(to, "{:<{}}    {}: {} of {} draft tokens accepted ({:.0f} %)\n", "", width, drafter, accepted,
                   proposed, 100.0 * static_cast<double>(accepted) / static_cast<double>(proposed));
  }
}

void AddComparisonWithFirst(const BenchVariantSummary& variant, const std::string& first, size_t width,
                            std::string* out) {
  const auto to = std::back_inserter(*out);
  const TextComparison& texts = variant.with_first;
  if (texts.compared == 0) {
    fmt::format_to(to, "{:<{}}  no answers to compare\n", variant.name, width);
  } else if (texts.differences.empty()) {
    fmt::format_to(to, "{:<{}}  text identical to '{}' in all {} answers\n", variant.name, width, first,
                   texts.compared);
  } else {
    const BenchDifference& difference = texts.differences.front();
    fmt::format_to(to, "{:<{}}  text differs from '{}' in {} of {} answers, first for prompt {} after {} bytes\n",
                   variant.name, width, first, texts.differences.size(), texts.compared, difference.question.prompt + 1,
                   difference.position);
  }
}

void AddComparisonOverConcurrency(const BenchVariantSummary& variant, size_t width, std::string* out) {
  const TextComparison& texts = variant.with_lowest_concurrency;
  if (texts.compared == 0) return;
  const auto to = std::back_inserter(*out);
  if (texts.differences.empty()) {
    fmt::format_to(to, "{:<{}}  text independent of concurrency in all {} answers\n", variant.name, width,
                   texts.compared);
  } else {
    fmt::format_to(to, "{:<{}}  text depends on concurrency in {} of {} answers, first for prompt {}\n", variant.name,
                   width, texts.differences.size(), texts.compared, texts.differences.front().question.prompt + 1);
  }
}

}  // namespace

std::string SummaryTable(const BenchSummary& summary) {
  if (summary.variants.empty()) return "nothing was measured\n";
  const std::string& first = summary.variants.front().name;
  size_t width = 8;
  for (const BenchVariantSummary& variant : summary.variants) width = std::max(width, variant.name.size());
  std::string out;
  AddSpeeds(summary, width, &out);
  out += '\n';
  for (const BenchVariantSummary& variant : summary.variants) AddLatencyAndDrafters(variant, width, &out);
  out += '\n';
  for (const BenchVariantSummary& variant : summary.variants) {
    if (variant.name != first) AddComparisonWithFirst(variant, first, width, &out);
    AddComparisonOverConcurrency(variant, width, &out);
  }
  return out;
}

}  // namespace outrider
