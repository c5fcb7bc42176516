// What the records of a benchmark come to.
//
// Speeds are those of generating, without the prompt and the first token, which have a number of their own. Each
// variant is compared with the first one, question by question.
//
// Pure; the same records give the same numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/record.h"
#include "bench/statistics.h"

namespace outrider {

// Some of a variant's answers: those of one category, at one temperature, ….
struct BenchSlice {
  std::string name;        // "all", "code", "temperature 0.8", …
  double prompt_tokens;    // median
  Summary speed;           // tokens a second
  Summary speed_up;        // over the same questions' answers of the first variant
  Interval speed_up_sure;  // of its median
};

struct BenchDifference {
  BenchQuestion question;
  size_t position = 0;  // bytes that both texts have
};

struct BenchVariantSummary {
  std::string name;
  std::vector<BenchSlice> slices;                   // "all" first, then categories
  Summary first_token;                              // seconds
  double gap_median = 0, gap_p90 = 0, gap_p99 = 0;  // seconds between pieces of text
  int answered = 0, failed = 0;
  uint64_t tokens = 0;
  double joules_per_token = -1;  // -1 = not known

  int compared = 0, identical = 0;                    // texts, with the first variant
  std::vector<BenchDifference> differences;           // the first of each conversation
  bool Differs(const BenchQuestion& question) const;  // at this turn of its conversation or before

  // If the server tells:
  std::map<std::string, std::pair<uint64_t, uint64_t>> drafters;  // tokens verified, accepted
  std::map<std::string, AcceptanceByPlace> by_place;              // by drafter
  std::map<std::string, double> stages;                           // seconds, over all answers
  std::map<int, std::vector<double>> step_ms;                     // by rows
};

struct BenchSummary {
  std::vector<BenchVariantSummary> variants;  // in the order of their first records
};

BenchSummary SummariseRecords(const std::vector<BenchRecord>& records);

// For a terminal.
std::string SummaryTable(const BenchSummary& summary);

}  // namespace outrider
