// BenchRecord: one request of a benchmark and what came of it; a line of results.jsonl.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "bench/endpoint.h"

namespace outrider {

// What was asked, and how, apart from whom: requests with the same question are compared.
struct BenchQuestion {
  int prompt = 0;  // index
  int turn = 0;
  int run = 0;
  double temperature = 0;
  int context = 0;      // tokens of prose before it, about
  int concurrency = 1;  // requests at a time

  auto operator<=>(const BenchQuestion&) const = default;
};

struct BenchRecord {
  std::string variant;
  std::string category;
  BenchQuestion question;
  BenchAnswer answer;
  std::string error;   // why there is no answer; "" = there is
  double joules = -1;  // that the machine took meanwhile; -1 = not known
};

// A step of an answer, as Outrider's `timings.steps` tell it.
struct BenchStep {
  std::string drafter;  // "" = none
  int drafted = 0, accepted = 0;
  double ms = 0;
};
std::vector<BenchStep> StepsOf(const BenchAnswer& answer);

Json RecordJson(const BenchRecord& record);

// Lines as RecordJson makes them; kInvalidArgument names the line that is not one. Empty lines are skipped.
Result<std::vector<BenchRecord>> ParseRecords(std::string_view lines);

}  // namespace outrider
