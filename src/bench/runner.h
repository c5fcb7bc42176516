// The runs of a benchmark: every question goes to every variant before the next question, in rotating order, so that
// whatever else the machine does affects all variants alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/endpoint.h"
#include "bench/energy_meter.h"
#include "bench/prompt_set.h"
#include "bench/record.h"

namespace outrider {

struct BenchVariant {
  std::string name;
  Endpoint* endpoint;
};

struct BenchPlan {
  std::vector<BenchVariant> variants;
  std::vector<BenchPrompt> prompts;
  int runs = 1;
  std::vector<double> temperatures = {0};
  std::vector<int> contexts = {0};
  std::vector<int> concurrencies = {1};
  int max_tokens = 128;

  size_t Requests() const;  // without warm-up
};

// The request of a question, given the answers to the turns before it.
BenchRequest RequestFor(const BenchPlan& plan, const BenchQuestion& question, const std::vector<std::string>& answers);

// Asks each variant for a short answer that is not measured.
Status WarmUp(const BenchPlan& plan);

// Calls `take` with each record, from one thread at a time. A request that fails becomes a record with an error; if a
// variant fails several times in a row, the benchmark ends with that error. Ends early, without an error, when `stop`
// is set.
Status RunBench(const BenchPlan& plan, EnergyMeter& energy, const std::function<void(BenchRecord)>& take,
                const std::atomic<bool>& stop);

}  // namespace outrider
