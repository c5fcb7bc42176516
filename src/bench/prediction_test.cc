#include "bench/prediction.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

const CostCurve kCurve({{1, 0.010}, {5, 0.014}});

// An answer whose steps took what the curve says.
BenchRecord Answer(const std::string& variant, const std::vector<BenchStep>& steps, double draft_token_seconds) {
  BenchRecord record;
  record.variant = variant;
  Json list = Json::array();
  double seconds = 0;
  int tokens = 1;
  for (const BenchStep& step : steps) {
    seconds += kCurve.Seconds(1 + step.drafted, 0) + (step.drafter == "model" ? step.drafted * draft_token_seconds : 0);
    tokens += step.accepted + 1;
    list.push_back({step.drafter.empty() ? Json() : Json(step.drafter), step.drafted, step.accepted, 1.0});
  }
  record.answer.timings = {{"steps", std::move(list)}};
  record.answer.tokens = tokens;
  record.answer.arrivals = {1, 1.001};
  record.answer.seconds = 1 + seconds;
  return record;
}

TEST(PredictionTest, IsRightWhereStepsTakeWhatTheCurveSays) {
  const std::vector<BenchStep> drafted = {{"suffix", 4, 4, 0}, {"model", 3, 1, 0}, {"", 0, 0, 0}};
  const std::vector<BenchRecord> records = {Answer("plain", std::vector<BenchStep>(8), 0),
                                            Answer("auto", drafted, 0.002)};
  const auto predictions = PredictRecords(records, {"auto"}, kCurve, {0.002, 0});
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_EQ(predictions[0].variant, "auto");
  EXPECT_NEAR(predictions[0].predicted, predictions[0].measured, 1e-6);
  EXPECT_GT(predictions[0].predicted, 1.3);
  std::vector<BenchRecord> with_prompt = records;
  with_prompt[1].answer.prompt_tokens = 10;
  with_prompt[1].answer.seconds += 10 * 0.0005;
  const auto read_too = PredictRecords(with_prompt, {"auto"}, kCurve, {0.002, 0.0005});
  EXPECT_NEAR(read_too[0].predicted, read_too[0].measured, 1e-6);
  EXPECT_TRUE(PredictRecords({}, {"auto"}, kCurve, {}).empty());
}

TEST(PredictionTest, TellsOnlyOfWhatTheCurveIsAbout) {
  std::vector<BenchRecord> records = {Answer("plain", std::vector<BenchStep>(3), 0),
                                      Answer("auto", {{"suffix", 4, 2, 0}}, 0)};
  EXPECT_EQ(PredictRecords(records, {"auto"}, kCurve, {}).size(), 1u);
  EXPECT_TRUE(PredictRecords(records, {"another"}, kCurve, {}).empty());
  for (BenchRecord& record : records) record.question.concurrency = 4;
  EXPECT_TRUE(PredictRecords(records, {"auto"}, kCurve, {}).empty());
}

TEST(PredictionTest, ADrafterSeesOthersStepsAsStepsWithoutADraft) {
  const auto steps = StepsByDrafter({Answer("auto", {{"suffix", 4, 2, 0}, {"model", 3, 3, 0}, {"", 0, 0, 0}}, 0)});
  ASSERT_EQ(steps.size(), 2u);
  const std::vector<TakenStep>& suffix = steps.at({"auto", "suffix"});
  ASSERT_EQ(suffix.size(), 1u + 4 + 1);
  EXPECT_EQ(suffix[0].accepted, 2);
  EXPECT_EQ(suffix[1].drafted, 0);
  EXPECT_EQ(steps.at({"auto", "model"}).size(), 3u + 1 + 1);
}

}  // namespace
}  // namespace outrider
