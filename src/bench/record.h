// BenchRecord: one request of a benchmark and its answer; a line of results.jsonl.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "bench/endpoint.h"

namespace outrider {

// What was asked and under which conditions, but not of which variant: answers to the same question are compared.
struct BenchQuestion {
  int prompt = 0;  // index
  int turn = 0;
  int run = 0;
  double temperature = 0;
  int context = 0;      // tokens of prose before the prompt, approximately
  int concurrency = 1;  // requests at a time

  auto operator<=>(const BenchQuestion&) const = default;
};

struct BenchRecord {
  std::string variant;
  std::string category;
  BenchQuestion question;
  BenchAnswer answer;
  std::string error;   // why there is no answer; "" = there is
  double joules = -1;  // energy that the machine used meanwhile; -1 = not known
};

// A step of an answer, as Outrider's `timings.steps` report it.
struct BenchStep {
  std::string drafter;  // "" = none
  int drafted = 0, accepted = 0;
  double ms = 0;
};
std::vector<BenchStep> StepsOf(const BenchAnswer& answer);

struct BenchPrediction {
  std::string variant;
  double predicted = 1;  // speed-up over plain steps that the cost curve gives for the steps that were taken
  double measured = 1;   // time of the first variant's answers divided by the time of this one's
};

// What is known about a benchmark besides its records.
struct BenchHeading {
  std::string title, date, machine, version;
  std::string command;  // that runs it again

  // Known once all requests are answered.
  std::map<std::string, std::string> explained = {};  // by variant: where its text first differs
  std::map<std::string, double> peak_bytes = {};      // by variant: the peak of its memory
  std::vector<BenchPrediction> predictions = {};
};

// Lines of results.jsonl.
Json HeadingJson(const BenchHeading& heading);
Json RecordJson(const BenchRecord& record);

// All records of a file; kInvalidArgument names the line that is not one. Empty lines are skipped. If there are several
// headings, the last one counts; `heading` may be null.
Result<std::vector<BenchRecord>> ParseRecords(std::string_view lines, BenchHeading* heading = nullptr);

}  // namespace outrider
