#include "api/answer_fields.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

TEST(AnswerFieldsTest, TimingsAreFiniteAndCountSteps) {
  const Json timings = TimingsJson({10, 4, 11, 1.0, 50.0, 100.0});
  EXPECT_EQ(timings["cache_n"], 4);
  EXPECT_EQ(timings["prompt_n"], 10);
  EXPECT_EQ(timings["prompt_per_token_ms"], 5.0);
  EXPECT_EQ(timings["prompt_per_second"], 200.0);
  EXPECT_EQ(timings["predicted_n"], 11);
  EXPECT_EQ(timings["predicted_per_token_ms"], 10.0);
  EXPECT_EQ(timings["predicted_per_second"], 100.0);
  const Json idle = TimingsJson({});
  for (const auto& [name, value] : idle.items()) {
    EXPECT_TRUE(value.is_number() && std::isfinite(value.get<double>())) << name;
  }
}

TEST(AnswerFieldsTest, FinishReasons) {
  Completion completion;
  EXPECT_STREQ(OpenAiFinishReason(completion, false), "stop");
  EXPECT_STREQ(OpenAiFinishReason(completion, true), "tool_calls");
  completion.reason = FinishReason::kStopString;
  EXPECT_STREQ(OpenAiFinishReason(completion, false), "stop");
  for (const FinishReason reason : {FinishReason::kLength, FinishReason::kTimeLimit}) {
    completion.reason = reason;
    EXPECT_STREQ(OpenAiFinishReason(completion, true), "length");
  }
}

TEST(AnswerFieldsTest, EventsAreFramed) {
  EXPECT_EQ(SseEvent("", {{"a", "x\ny"}}), "data: {\"a\":\"x\\ny\"}\n\n");
  EXPECT_EQ(SseEvent("ping", Json::object()), "event: ping\ndata: {}\n\n");
}

}  // namespace
}  // namespace outrider
