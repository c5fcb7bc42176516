#include "bench/summary.h"

#include <gtest/gtest.h>

#include "bench/summary_table.h"

namespace outrider {
namespace {

BenchRecord Record(const std::string& variant, int prompt, double speed, const std::string& text = "hello",
                   const std::string& category = "chat") {
  BenchRecord record;
  record.variant = variant;
  record.category = category;
  record.question.prompt = prompt;
  record.answer.text = text;
  record.answer.tokens = 101;
  record.answer.arrivals = {0.5, 1.0};
  record.answer.seconds = 0.5 + 100 / speed;
  return record;
}

const BenchSlice& Slice(const BenchVariantSummary& variant, const std::string& name) {
  for (const BenchSlice& slice : variant.slices) {
    if (slice.name == name) return slice;
  }
  ADD_FAILURE() << name;
  return variant.slices.front();
}

TEST(SummaryTest, ComparesAnswersToTheSameQuestion) {
  std::vector<BenchRecord> records;
  // A slow prompt and a quick one: ratios of medians would say something else than the median of ratios.
  for (const double slow : {1.0, 10.0, 100.0}) {
    const int prompt = static_cast<int>(slow);
    records.push_back(Record("plain", prompt, 100 / slow));
    records.push_back(Record("auto", prompt, 200 / slow, "hello", prompt == 1 ? "edit" : "chat"));
  }
  records.push_back(Record("auto", 77, 1e6));  // plain was never asked
  const BenchSummary summary = SummariseRecords(records);
  ASSERT_EQ(summary.variants.size(), 2u);
  const BenchSlice& all = Slice(summary.variants[1], "all");
  EXPECT_NEAR(all.speed_up.median, 2, 1e-9);
  EXPECT_NEAR(all.speed_up.p10, 2, 1e-9);
  EXPECT_EQ(all.speed_up.count, 3u);
  EXPECT_EQ(Slice(summary.variants[1], "edit").speed_up.count, 1u);
  EXPECT_NEAR(summary.variants[0].first_token.median, 0.5, 1e-9);
  EXPECT_NEAR(summary.variants[0].gap_median, 0.5, 1e-9);
}

TEST(SummaryTest, TellsWhereTextsDiffer) {
  std::vector<BenchRecord> records = {Record("plain", 0, 1, "the same"), Record("auto", 0, 1, "the same"),
                                      Record("plain", 1, 1, "one way"), Record("auto", 1, 1, "one day")};
  records.push_back(Record("auto", 2, 1));
  records.back().error = "gone";
  const BenchVariantSummary variant = SummariseRecords(records).variants[1];
  EXPECT_EQ(variant.with_first.compared, 2);
  EXPECT_EQ(variant.with_first.identical, 1);
  EXPECT_EQ(variant.failed, 1);
  ASSERT_EQ(variant.with_first.differences.size(), 1u);
  EXPECT_EQ(variant.with_first.differences[0].position, 4u);
  EXPECT_EQ(variant.with_first.differences[0].question.prompt, 1);
  EXPECT_NE(SummaryTable(SummariseRecords(records)).find("differs from 'plain' in 1 of 2"), std::string::npos);

  // What follows in the same conversation is an answer to something else.
  for (const char* name : {"plain", "auto"}) {
    records.push_back(Record(name, 1, 1, std::string(name) + " goes on"));
    records.back().question.turn = 1;
  }
  EXPECT_EQ(SummariseRecords(records).variants[1].with_first.compared, 2);
  EXPECT_EQ(SummariseRecords(records).variants[1].with_first.differences.size(), 1u);
}

TEST(SummaryTest, TellsWhetherTextDependsOnConcurrency) {
  std::vector<BenchRecord> records;
  for (const char* name : {"plain", "auto"}) {
    for (const int concurrency : {1, 4}) {
      for (int prompt = 0; prompt < 3; ++prompt) {
        // "auto" says something else to prompt 2 in company, and so does plain: the comparison with plain is blind to
        // it.
        records.push_back(Record(name, prompt, 1, prompt == 2 && concurrency == 4 ? "another" : "the same"));
        records.back().question.concurrency = concurrency;
      }
    }
  }
  const BenchSummary summary = SummariseRecords(records);
  EXPECT_EQ(summary.variants[1].with_first.identical, 6);
  for (const BenchVariantSummary& variant : summary.variants) {
    EXPECT_EQ(variant.with_lowest_concurrency.compared, 3);
    EXPECT_EQ(variant.with_lowest_concurrency.identical, 2);
    ASSERT_EQ(variant.with_lowest_concurrency.differences.size(), 1u);
    EXPECT_EQ(variant.with_lowest_concurrency.differences[0].question.prompt, 2);
  }
  const std::string table = SummaryTable(summary);
  EXPECT_NE(table.find("plain     text depends on concurrency in 1 of 3 answers, first for prompt 3\n"),
            std::string::npos)
      << table;
  records.pop_back();
  records.back().answer.text = "the same";
  EXPECT_NE(
      SummaryTable(SummariseRecords(records)).find("auto      text independent of concurrency in all 2 answers\n"),
      std::string::npos);
  // With one concurrency there is nothing to compare.
  EXPECT_EQ(SummariseRecords({records[0]}).variants[0].with_lowest_concurrency.compared, 0);
  EXPECT_EQ(SummaryTable(SummariseRecords({records[0]})).find("concurrency"), std::string::npos);
}

TEST(SummaryTest, SaysWhenThereIsNothingToSay) {
  std::vector<BenchRecord> records = {Record("plain", 0, 1), Record("auto", 0, 1)};
  records[1].error = "gone";
  const std::string table = SummaryTable(SummariseRecords(records));
  EXPECT_NE(table.find("auto      no answers: 1 failed"), std::string::npos) << table;
  EXPECT_NE(table.find("auto      no answers to compare"), std::string::npos) << table;
  EXPECT_EQ(table.find("nan"), std::string::npos) << table;
  EXPECT_EQ(SummaryTable(SummariseRecords({})), "nothing was measured\n");
}

// Two pieces at once say nothing about speed, one even less.
TEST(SummaryTest, TooLittleTextHasNoSpeed) {
  BenchRecord record = Record("plain", 0, 1);
  record.answer.arrivals = {0.5};
  EXPECT_EQ(record.answer.TokensPerSecond(), 0);
  EXPECT_EQ(SummariseRecords({record}).variants[0].slices[0].speed.count, 0u);
}

TEST(SummaryTest, TakesWhatTheServerTells) {
  BenchRecord record = Record("auto", 0, 1);
  record.answer.timings = *ParseJson(R"({"drafters": {"suffix": {"proposed": 10, "accepted": 7, "ms": 1}},
      "stages": {"prefill_ms": 500, "draft_ms": 250}, "steps": [["suffix", 4, 4, 10.0], ["suffix", 4, 0, 11.0],
      [null, 0, 0, 5.0], "nonsense", [1], ["x", 999999999, 999999999, 1.0]]})");
  const BenchVariantSummary variant = SummariseRecords({record}).variants[0];
  EXPECT_EQ(variant.drafters.at("suffix"), (std::pair<uint64_t, uint64_t>(10, 7)));
  EXPECT_NEAR(variant.stages.at("prefill"), 0.5, 1e-9);
  EXPECT_NEAR(variant.stages.at("wait"), record.answer.seconds - 0.75, 1e-9);
  EXPECT_NEAR(variant.by_position.at("suffix").Probability(0), 0.5, 1e-9);
  EXPECT_EQ(variant.step_ms.at(5).size(), 2u);
  EXPECT_EQ(variant.step_ms.at(1).size(), 1u);
}

TEST(RecordTest, SurvivesBeingWritten) {
  BenchRecord record = Record("auto", 3, 25, "tëxt\n");
  record.question = {3, 1, 2, 0.8, 2048, 4};
  record.answer.timings = {{"steps", {{"suffix", 4, 3, 1.5}}}};
  record.joules = 2.5;
  BenchRecord failed = Record("auto", 4, 1);
  failed.error = "gone";
  BenchHeading heading;
  const auto read = ParseRecords(
      DumpJson(HeadingJson(
          {"title", "date", "machine", "version", "command", {{"auto", "there"}}, {{"auto", 5}}, {{"auto", 2, 3}}})) +
          "\n" + DumpJson(RecordJson(record)) + "\n\n" + DumpJson(RecordJson(failed)) + "\n",
      &heading);
  EXPECT_EQ(heading.command, "command");
  EXPECT_EQ(heading.explained.at("auto"), "there");
  EXPECT_EQ(heading.peak_bytes.at("auto"), 5);
  ASSERT_EQ(heading.predictions.size(), 1u);
  EXPECT_EQ(heading.predictions[0].measured, 3);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(DumpJson(RecordJson((*read)[0])), DumpJson(RecordJson(record)));
  EXPECT_EQ((*read)[0].question, record.question);
  EXPECT_NEAR((*read)[0].answer.TokensPerSecond(), 25, 1e-3);
  EXPECT_EQ((*read)[1].error, "gone");
  EXPECT_FALSE(ParseRecords("{}").ok());
  EXPECT_FALSE(ParseRecords("nonsense").ok());
}

}  // namespace
}  // namespace outrider
