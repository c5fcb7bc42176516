#include "bench/prediction.h"

#include <algorithm>
#include <utility>

namespace outrider {

std::vector<BenchPrediction> PredictRecords(const std::vector<BenchRecord>& records,
                                            const std::vector<std::string>& variants, const CostCurve& curve,
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
    if (record.question.context > 0 || record.question.concurrency > 1) continue;
    if (std::find(variants.begin(), variants.end(), record.variant) == variants.end()) continue;
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
    predictions.push_back({variant, ReplayedSpeedUp(curve, sum.steps), sum.plain_seconds / sum.seconds});
  }
  return predictions;
}

std::map<std::pair<std::string, std::string>, std::vector<TakenStep>> StepsByDrafter(
    const std::vector<BenchRecord>& records) {
  std::map<std::pair<std::string, std::string>, std::vector<TakenStep>> steps;
  for (const BenchRecord& record : records) {
    for (const BenchStep& step : StepsOf(record.answer)) {
      if (step.drafted > 0) steps[{record.variant, step.drafter}];
    }
  }
  for (const BenchRecord& record : records) {
    const std::vector<BenchStep> taken = StepsOf(record.answer);
    for (auto& [key, of_drafter] : steps) {
      const auto& [variant, drafter] = key;
      if (variant != record.variant) continue;
      for (const BenchStep& step : taken) {
        if (step.drafter == drafter) {
          of_drafter.push_back({step.drafted, step.accepted, 0});
        } else {
          of_drafter.insert(of_drafter.end(), static_cast<size_t>(step.accepted) + 1, TakenStep());
        }
      }
    }
  }
  return steps;
}

}  // namespace outrider
