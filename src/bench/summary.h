// The numbers that the records of a benchmark amount to.
//
// Speeds are those of generating, without the prompt and the first token, which are measured separately. Each variant
// is compared with the first one, question by question.
//
// The same records give the same numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "bench/record.h"
#include "bench/statistics.h"

namespace outrider {

// A subset of a variant's answers: those of one category, at one temperature, ….
struct BenchSlice {
  std::string name;            // "all", "code", "temperature 0.8", …
  double prompt_tokens;        // median
  Summary speed;               // tokens per second
  Summary speed_up;            // over the first variant's answers to the same questions
  Interval speed_up_interval;  // of the median, with 95 % confidence
};

struct BenchDifference {
  BenchQuestion question;
  size_t position = 0;  // bytes that both texts have in common
};

// Texts that should be the same.
struct TextComparison {
  int compared = 0, identical = 0;
  std::vector<BenchDifference> differences;           // the first of each conversation
  bool Differs(const BenchQuestion& question) const;  // at this turn of its conversation or before
};

struct BenchVariantSummary {
  std::string name;
  std::vector<BenchSlice> slices;                   // "all" first, then categories
  Summary first_token;                              // seconds
  double gap_median = 0, gap_p90 = 0, gap_p99 = 0;  // seconds between pieces of text
  int answered = 0, failed = 0;
  uint64_t tokens = 0;
  double joules_per_token = -1;  // -1 = not known

  TextComparison with_first;  // with the first variant's answers to the same questions; empty for the first itself

  // Its answers at higher concurrencies with its own at the lowest: whether text depends on other requests. Empty if
  // only one concurrency was measured.
  TextComparison with_lowest_concurrency;

  // Only from servers that report it:
  std::map<std::string, std::pair<uint64_t, uint64_t>> drafters;  // tokens verified, accepted
  std::map<std::string, AcceptanceByPosition> by_position;        // by drafter
  std::map<std::string, double> stages;                           // seconds, over all answers
  std::map<int, std::vector<double>> step_ms;                     // by rows
};

struct BenchSummary {
  std::vector<BenchVariantSummary> variants;  // in the order of their first records
};

BenchSummary SummariseRecords(const std::vector<BenchRecord>& records);

}  // namespace outrider
