#include "apps/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "bench/prompt_set.h"

namespace outrider {
namespace {

Result<std::vector<BenchPrompt>> ReadPrompts(const std::string& path) {
  if (path.empty()) return ParsePrompts(DefaultPrompts());
  const auto text = ReadFile(path);
  if (!text) return InvalidArgument("cannot read the prompts in " + path);
  auto prompts = ParsePrompts(*text);
  if (!prompts.ok()) return InvalidArgument(path + ", " + prompts.status().message());
  return prompts;
}

}  // namespace

Result<int> ParseContextTokens(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || value < 0 || value > (1 << 20) || !(unit.empty() || unit == "k" || unit == "K")) {
    return InvalidArgument("--context takes numbers of tokens like 0,2k,8k, not '" + text + "'");
  }
  if (!unit.empty()) value *= 1024;
  if (value > MaxProseTokens()) {
    return InvalidArgument(fmt::format("--context {}: the built-in prose has only {} tokens", text, MaxProseTokens()));
  }
  return value;
}

Result<BenchPlan> MakeBenchPlan(const BenchOptions& options) {
  BenchPlan plan;
  plan.runs = options.runs;
  plan.temperatures = options.temperatures;
  plan.concurrencies = options.concurrency;
  plan.max_tokens = options.tokens;
  plan.contexts.clear();
  for (const std::string& text : options.contexts) {
    const auto tokens = ParseContextTokens(text);
    if (!tokens.ok()) return tokens.status();
    plan.contexts.push_back(*tokens);
  }
  auto prompts = ReadPrompts(options.prompts);
  if (!prompts.ok()) return prompts.status();
  plan.prompts = SpreadOverCategories(std::move(*prompts), options.count);
  const int max_concurrency = *std::max_element(plan.concurrencies.begin(), plan.concurrencies.end());
  if (max_concurrency > static_cast<int>(plan.prompts.size())) {
    return InvalidArgument(fmt::format("--concurrency {}: there are only {} prompts to ask at a time", max_concurrency,
                                       plan.prompts.size()));
  }
  return plan;
}

}  // namespace outrider
