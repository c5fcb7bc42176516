#include "bench/prediction.h"

#include <algorithm>
#include <utility>

namespace outrider {

std::vector<BenchPrediction> PredictRecords(const std::vector<BenchRecord>& records, const CostCurve& curve,
                                            const DraftModelCosts& draft) {
  struct Sum {
    std::vector<TakenStep> steps;
    double seconds = 0, plain_seconds = 0;
  };
  std::map<BenchQuestion, const BenchAnswer*> plain;
  std::vector<std::pair<std::string, Sum>> sums;
  for (const BenchRecord& record : records) {
    if (record.variant == records.front().variant && record.error.empty()) plain[record.question] = &record.answer;
  }
  for (const BenchRecord& record : records) {
    const auto found = plain.find(record.question);
    if (record.variant == records.front().variant || !record.error.empty() || found == plain.end()) continue;
    const BenchAnswer &answer = record.answer, &of_plain = *found->second;
    if (answer.TokensPerSecond() <= 0 || of_plain.TokensPerSecond() <= 0) continue;
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& each) { return each.first == record.variant; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {record.variant, {}});
    bool has_read = false;
    for (const BenchStep& step : StepsOf(answer)) {
      double drafting = 0;
      if (step.drafter == "model") {
        drafting = step.drafted * draft.token_seconds;
        if (!std::exchange(has_read, true)) drafting += answer.prompt_tokens * draft.read_seconds;
      }
      sum->second.steps.push_back({step.drafted, step.accepted, drafting});
    }
    sum->second.seconds += (answer.tokens - 1) / answer.TokensPerSecond();
    sum->second.plain_seconds += (answer.tokens - 1) / of_plain.TokensPerSecond();
  }
  std::vector<BenchPrediction> predictions;
  for (const auto& [variant, sum] : sums) {
    if (sum.steps.empty() || sum.seconds <= 0) continue;
    predictions.push_back({variant, ReplayedSpeedUp(curve, sum.steps, 0), sum.plain_seconds / sum.seconds});
  }
  return predictions;
}

std::map<std::string, Outcomes> OutcomesByDrafter(const std::vector<BenchRecord>& records) {
  std::map<std::string, Outcomes> outcomes;
  for (const BenchRecord& record : records) {
    for (const BenchStep& step : StepsOf(record.answer)) {
      if (step.drafted == 0) continue;
      Outcomes& of_drafter = outcomes[step.drafter];
      of_drafter.insert(of_drafter.end(), static_cast<size_t>(step.accepted), true);
      if (step.accepted < step.drafted) of_drafter.push_back(false);
    }
  }
  return outcomes;
}

}  // namespace outrider
