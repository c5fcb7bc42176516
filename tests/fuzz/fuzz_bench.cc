// What a benchmark reads: prompts, its own results, and what servers answer.
#include <cstdint>
#include <string_view>

#include "bench/prediction.h"
#include "bench/prompt_set.h"
#include "bench/record.h"
#include "bench/report.h"
#include "bench/sse_reader.h"
#include "bench/summary.h"
#include "bench/summary_table.h"
#include "require.h"

namespace outrider {
namespace {

void Check(std::string_view bytes) {
  const auto prompts = ParsePrompts(bytes);
  Require(!prompts.ok() || !prompts->empty(), "a set of prompts has some");

  std::string whole, parts;
  SseReader at_once([&](std::string_view data) { whole += data; });
  SseReader in_parts([&](std::string_view data) { parts += data; });
  at_once.Feed(bytes);
  for (size_t i = 0; i < bytes.size(); i += 3) in_parts.Feed(bytes.substr(i, 3));
  Require(whole == parts, "where bytes are cut does not matter");

  BenchHeading heading;
  const auto records = ParseRecords(bytes, &heading);
  if (!records.ok()) return;
  const BenchSummary summary = SummariseRecords(*records);
  SummaryTable(summary);
  StepsByDrafter(*records);
  const Json report = ReportJson(heading, *records, summary);
  Require(ParseJson(DumpJson(report)).ok(), "what the page gets is JSON");
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outrider::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
