// What a plan says about the answers of a benchmark, and recorded acceptance for other plans.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/record.h"
#include "spec/predict.h"

namespace outrider {

struct BenchPrediction {
  std::string variant;
  double predicted = 1;  // speed-up over plain steps, by the curve, of the steps as they were taken
  double measured = 1;   // time of the first variant's answers over that of this one's
};

// Of each variant after the first whose steps are known. A draft model reads the prompt while the target generates.
std::vector<BenchPrediction> PredictRecords(const std::vector<BenchRecord>& records, const CostCurve& curve,
                                            const DraftModelCosts& draft);

// Outcomes of drafted tokens, by drafter, over all answers.
std::map<std::string, Outcomes> OutcomesByDrafter(const std::vector<BenchRecord>& records);

}  // namespace outrider
