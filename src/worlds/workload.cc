#include "worlds/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/json.h"

namespace outrider {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr double kMinLogOdds = -4, kMaxLogOdds = 6;
constexpr double kDigitLogOdds = (kMaxLogOdds - kMinLogOdds) / 63;
constexpr int kMaxAnswerTokens = 1 << 16;

char DigitOf(float confidence) {
  const double chance = std::clamp(static_cast<double>(confidence), 1e-6, 1 - 1e-6);
  const double log_odds = std::clamp(std::log(chance / (1 - chance)), kMinLogOdds, kMaxLogOdds);
  return kDigits[static_cast<size_t>(std::lround((log_odds - kMinLogOdds) / kDigitLogOdds))];
}

float ConfidenceOf(size_t digit) {
  const double log_odds = kMinLogOdds + static_cast<double>(digit) * kDigitLogOdds;
  return static_cast<float>(1 / (1 + std::exp(-log_odds)));
}

std::string DumpDraft(const RecordedDraft& draft) {
  if (draft.confidences.empty()) return "";
  std::string text(1, kDigits[static_cast<size_t>(draft.right)]);
  for (const float confidence : draft.confidences) text += DigitOf(confidence);
  return text;
}

std::optional<RecordedDraft> ParseDraft(const Json& json) {
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  RecordedDraft draft;
  if (text.empty()) return draft;
  if (text.size() > RecordedDraft::kMaxTokens + 1 || text.find_first_not_of(kDigits) != std::string::npos)
    return std::nullopt;
  draft.right = static_cast<int>(kDigits.find(text[0]));
  for (const char digit : std::string_view(text).substr(1))
    draft.confidences.push_back(ConfidenceOf(kDigits.find(digit)));
  if (draft.right > static_cast<int>(draft.confidences.size())) return std::nullopt;
  return draft;
}

Json HeaderJson(const Workload& workload) {
  return {{"workload", workload.name}, {"drafters", workload.drafters}};
}

Json AnswerJson(const RecordedAnswer& answer) {
  Json drafts = Json::array();
  for (const auto& of_drafter : answer.drafts) {
    Json& list = drafts.emplace_back(Json::array());
    for (const RecordedDraft& draft : of_drafter) list.push_back(DumpDraft(draft));
  }
  return {{"category", answer.category}, {"prompt", answer.prompt_tokens}, {"drafts", std::move(drafts)}};
}

bool ParseHeader(const Json& json, Workload* workload) {
  if (!json.is_object() || !json.contains("workload") || !json["workload"].is_string()) return false;
  if (!json.contains("drafters") || !json["drafters"].is_array()) return false;
  workload->name = json["workload"];
  for (const Json& name : json["drafters"]) {
    if (!name.is_string()) return false;
    workload->drafters.push_back(name);
  }
  return !workload->drafters.empty();
}

bool ParseAnswer(const Json& json, size_t n_drafters, RecordedAnswer* answer) {
  if (!json.is_object() || !json.contains("category") || !json["category"].is_string()) return false;
  if (!json.contains("prompt") || !json["prompt"].is_number_unsigned()) return false;
  if (!json.contains("drafts") || !json["drafts"].is_array() || json["drafts"].size() != n_drafters) return false;
  answer->category = json["category"];
  const auto prompt = json["prompt"].get<uint64_t>();
  if (prompt > 1 << 24) return false;
  answer->prompt_tokens = static_cast<int>(prompt);
  for (const Json& list : json["drafts"]) {
    if (!list.is_array() || list.empty() || list.size() > kMaxAnswerTokens) return false;
    auto& of_drafter = answer->drafts.emplace_back();
    for (const Json& draft : list) {
      auto parsed = ParseDraft(draft);
      if (!parsed) return false;
      of_drafter.push_back(std::move(*parsed));
    }
    if (of_drafter.size() != answer->drafts[0].size()) return false;
  }
  return true;
}

}  // namespace

std::string DumpWorkload(const Workload& workload) {
  std::string text = DumpJson(HeaderJson(workload)) + "\n";
  for (const RecordedAnswer& answer : workload.answers) text += DumpJson(AnswerJson(answer)) + "\n";
  return text;
}

Result<Workload> ParseWorkload(std::string_view text) {
  Workload workload;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (line.empty()) continue;
    auto json = ParseJson(line);
    const bool fine = json.ok() && (workload.drafters.empty() ? ParseHeader(*json, &workload)
                                                              : ParseAnswer(*json, workload.drafters.size(),
                                                                            &workload.answers.emplace_back()));
    if (!fine)
      return InvalidArgument(fmt::format("line {} is not of a workload that outrider bench recorded", line_number));
  }
  if (workload.answers.empty()) return InvalidArgument("a workload without answers");
  return workload;
}

WorldRequest RequestFrom(const Workload& workload, const RecordedAnswer& answer,
                         const std::vector<WorldDrafter>& drafters) {
  WorldRequest request;
  request.prompt_tokens = answer.prompt_tokens;
  request.tokens = answer.tokens();
  for (const WorldDrafter& drafter : drafters) {
    const auto found = std::find(workload.drafters.begin(), workload.drafters.end(), drafter.name);
    if (found == workload.drafters.end()) {
      request.predictions.push_back([](int, int) { return std::nullopt; });
      continue;
    }
    const auto& drafts = answer.drafts[static_cast<size_t>(found - workload.drafters.begin())];
    request.predictions.push_back([&drafts](int position, int index) -> std::optional<PredictedToken> {
      if (position >= static_cast<int>(drafts.size())) return std::nullopt;
      const RecordedDraft& draft = drafts[static_cast<size_t>(position)];
      if (index >= static_cast<int>(draft.confidences.size())) return std::nullopt;
      return PredictedToken{index < draft.right, draft.confidences[static_cast<size_t>(index)]};
    });
  }
  return request;
}

}  // namespace outrider
