// What a plan says about the answers of a benchmark, and recorded acceptance for other plans.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/record.h"
#include "spec/predict.h"

namespace outrider {

// Of each of `variants` whose steps are known, by its answers to questions without a context, one at a time; a curve
// tells of no others. A draft model reads the prompt while the target generates.
std::vector<BenchPrediction> PredictRecords(const std::vector<BenchRecord>& records,
                                            const std::vector<std::string>& variants, const CostCurve& curve,
                                            const DraftModelCosts& draft);

// Steps of all answers as each drafter saw them: those of others are steps without a draft. By variant and drafter.
std::map<std::pair<std::string, std::string>, std::vector<TakenStep>> StepsByDrafter(
    const std::vector<BenchRecord>& records);

}  // namespace outrider
