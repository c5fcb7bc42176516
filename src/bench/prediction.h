// Which speed-up a cost curve predicts for the steps of a benchmark, and the recorded steps as input for other
// predictions (outrider plan).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/record.h"
#include "spec/predict.h"

namespace outrider {

// One prediction for each of `variants` whose steps are known. Only answers to questions without a context and with
// concurrency 1 count: the curve was measured for those. A draft model reads the prompt during the first step in which
// it drafts.
std::vector<BenchPrediction> PredictRecords(const std::vector<BenchRecord>& records,
                                            const std::vector<std::string>& variants, const CostCurve& curve,
                                            const DraftModelCosts& draft);

// Steps of all answers by variant and drafter. A step with another drafter's draft becomes the plain steps that would
// have been needed for its tokens.
std::map<std::pair<std::string, std::string>, std::vector<TakenStep>> StepsByDrafter(
    const std::vector<BenchRecord>& records);

}  // namespace outrider
