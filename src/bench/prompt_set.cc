#include "bench/prompt_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/json.h"
#include "bench/embedded.h"
#include "bench/json_lines.h"

namespace outrider {
namespace {

constexpr double kCharactersPerToken = 4.2;  // English prose, with most tokenizers

Result<BenchPrompt> ReadPrompt(const Json& json) {
  if (!json.is_object()) return InvalidArgument("not an object");
  BenchPrompt prompt;
  const auto category = json.find("category");
  if (category != json.end()) {
    if (!category->is_string()) return InvalidArgument("\"category\" is not a string");
    prompt.category = category->get<std::string>();
  }
  if (prompt.category.empty()) prompt.category = "other";
  if (prompt.category == "all") return InvalidArgument("\"all\" cannot be a category");
  const auto turns = json.find("turns");
  if (turns == json.end() || !turns->is_array() || turns->empty()) {
    return InvalidArgument("\"turns\" must be a list of what the user says");
  }
  for (const Json& turn : *turns) {
    if (!turn.is_string() || turn.get_ref<const std::string&>().empty()) {
      return InvalidArgument("a turn is not a string, or empty");
    }
    prompt.turns.push_back(turn.get<std::string>());
  }
  return prompt;
}

}  // namespace

Result<std::vector<BenchPrompt>> ParsePrompts(std::string_view lines) {
  std::vector<BenchPrompt> prompts;
  const Status status = ForEachJsonLine(lines, [&](const Json& json) -> Status {
    auto prompt = ReadPrompt(json);
    if (!prompt.ok()) return prompt.status();
    prompts.push_back(std::move(*prompt));
    return {};
  });
  if (!status.ok()) return status;
  if (prompts.empty()) return InvalidArgument("there are no prompts in it");
  return prompts;
}

std::string_view DefaultPrompts() {
  return EmbeddedPrompts();
}

std::vector<BenchPrompt> SpreadOverCategories(std::vector<BenchPrompt> prompts, int count) {
  const auto wanted = static_cast<size_t>(std::max(count, 0));
  if (wanted == 0 || wanted >= prompts.size()) return prompts;
  std::map<std::string, std::vector<BenchPrompt>> by_category;
  for (BenchPrompt& prompt : prompts) by_category[prompt.category].push_back(std::move(prompt));
  std::vector<BenchPrompt> chosen;
  for (size_t round = 0; chosen.size() < wanted; ++round) {
    for (auto& [category, members] : by_category) {
      if (round < members.size() && chosen.size() < wanted) chosen.push_back(std::move(members[round]));
    }
  }
  return chosen;
}

int MaxProseTokens() {
  return static_cast<int>(static_cast<double>(EmbeddedProse().size()) / kCharactersPerToken);
}

std::string Prose(int tokens) {
  const std::string_view prose = EmbeddedProse();
  const auto wanted = static_cast<size_t>(std::max(tokens, 0) * kCharactersPerToken);
  if (wanted >= prose.size()) return std::string(prose);
  const size_t end = prose.rfind(' ', wanted);
  return std::string(prose.substr(0, end == prose.npos ? wanted : end));
}

}  // namespace outrider
