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
  record.answer.arrivals = {1};
  record.answer.seconds = 1 + seconds;
  return record;
}

TEST(PredictionTest, IsRightWhereStepsTakeWhatTheCurveSays) {
  const std::vector<BenchStep> drafted = {{"suffix", 4, 4, 0}, {"model", 3, 1, 0}, {"", 0, 0, 0}};
  const std::vector<BenchRecord> records = {Answer("plain", std::vector<BenchStep>(8), 0),
                                            Answer("auto", drafted, 0.002)};
  const auto predictions = PredictRecords(records, kCurve, {0.002, 0});
  ASSERT_EQ(predictions.size(), 1u);
  EXPECT_EQ(predictions[0].variant, "auto");
  EXPECT_NEAR(predictions[0].predicted, predictions[0].measured, 1e-6);
  EXPECT_GT(predictions[0].predicted, 1.3);
  std::vector<BenchRecord> with_prompt = records;
  with_prompt[1].answer.prompt_tokens = 10;
  with_prompt[1].answer.seconds += 10 * 0.0005;
  const auto read_too = PredictRecords(with_prompt, kCurve, {0.002, 0.0005});
  EXPECT_NEAR(read_too[0].predicted, read_too[0].measured, 1e-6);
  EXPECT_TRUE(PredictRecords({}, kCurve, {}).empty());
}

TEST(PredictionTest, OutcomesEndWithTheFirstWrongToken) {
  const auto outcomes = OutcomesByDrafter(
      {Answer("auto", {{"suffix", 4, 2, 0}, {"model", 3, 3, 0}, {"", 0, 0, 0}, {"suffix", 2, 0, 0}}, 0)});
  EXPECT_EQ(outcomes.at("suffix"), (Outcomes{true, true, false, false}));
  EXPECT_EQ(outcomes.at("model"), (Outcomes{true, true, true}));
}

}  // namespace
}  // namespace outrider
