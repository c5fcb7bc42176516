#include "api/answer_fields.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outrider {
namespace {

TEST(AnswerFieldsTest, TimingsAreFiniteAndCountSteps) {
  const Json timings = TimingsJson(GenerationTimings{.prompt_tokens = 10,
                                                     .cached_tokens = 4,
                                                     .generated_tokens = 11,
                                                     .queue_ms = 1.0,
                                                     .prompt_ms = 50.0,
                                                     .generate_ms = 100.0});
  EXPECT_EQ(timings["cache_n"], 4);
  EXPECT_EQ(timings["prompt_n"], 10);
  EXPECT_EQ(timings["prompt_per_token_ms"], 5.0);
  EXPECT_EQ(timings["prompt_per_second"], 200.0);
  EXPECT_EQ(timings["predicted_n"], 11);
  EXPECT_EQ(timings["predicted_per_token_ms"], 10.0);
  EXPECT_EQ(timings["predicted_per_second"], 100.0);
  const Json idle = TimingsJson(GenerationTimings{}).flatten();
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
  EXPECT_STREQ(OpenAiFinishReason(completion, true), "tool_calls");
  for (const FinishReason reason : {FinishReason::kLength, FinishReason::kTimeLimit, FinishReason::kCancelled}) {
    completion.reason = reason;
    EXPECT_STREQ(OpenAiFinishReason(completion, true), "length");
  }
  completion.reason = FinishReason::kError;
  EXPECT_STREQ(OpenAiFinishReason(completion, true), "error");
}

TEST(AnswerFieldsTest, EventsAreFramed) {
  EXPECT_EQ(SseEvent("", {{"a", "x\ny"}}), "data: {\"a\":\"x\\ny\"}\n\n");
  EXPECT_EQ(SseEvent("ping", Json::object()), "event: ping\ndata: {}\n\n");
}

TEST(AnswerFieldsTest, TimingsTellWhatDraftersDid) {
  Completion completion;
  completion.timings.drafted_tokens = 9;
  completion.timings.accepted_tokens = 7;
  completion.timings.replayed_tokens = 3;
  completion.timings.prompt_ms = 8;
  completion.timings.draft_ms = 4;
  completion.timings.decode_ms = 2;
  completion.timings.sample_ms = 1;
  completion.timings.rollback_ms = 0.5;
  completion.drafters = {{"suffix", 6, 5, 0.002}, {"model", 3, 2, 0.25}};
  completion.speed_up = 1.5;
  const Json timings = TimingsJson(completion);
  EXPECT_EQ(timings["draft_n"], 9);
  EXPECT_EQ(timings["draft_n_accepted"], 7);
  EXPECT_EQ(timings["replayed_n"], 3);
  EXPECT_EQ(
      timings["stages"],
      (Json{{"prefill_ms", 8.0}, {"draft_ms", 4.0}, {"verify_ms", 2.0}, {"sample_ms", 1.0}, {"rollback_ms", 0.5}}));
  EXPECT_EQ(timings["drafters"]["suffix"], (Json{{"proposed", 6}, {"accepted", 5}, {"ms", 2.0}}));
  EXPECT_EQ(timings["drafters"]["model"], (Json{{"proposed", 3}, {"accepted", 2}, {"ms", 250.0}}));
  EXPECT_EQ(timings["speed_up"], 1.5);
  EXPECT_FALSE(timings.contains("steps"));
}

TEST(AnswerFieldsTest, StepsAreListedIfThereAreAny) {
  Completion completion;
  completion.steps.push_back({.drafter = "suffix", .drafted = 4, .accepted = 3, .ms = 1.23456, .rejected = {" b\xF0"}});
  completion.steps.push_back({.drafter = "", .drafted = 0, .accepted = 0, .ms = 2});
  EXPECT_EQ(TimingsJson(completion)["steps"],
            Json::parse(R"([["suffix", 4, 3, 1.235, [" b\uFFFD"]], [null, 0, 0, 2.0, []]])"));
}

TEST(AnswerFieldsTest, ProvenanceListsEachTokenWithItsDrafter) {
  GeneratedToken drafted, own;
  drafted.piece = " the";
  drafted.drafter = "suffix";
  own.piece = " cat";
  EXPECT_EQ(ProvenanceJson({drafted, own}), Json::parse(R"([{"text": " the", "drafter": "suffix"},
                                                            {"text": " cat", "drafter": null}])"));
}

TEST(AnswerFieldsTest, ProvenanceGivesTheBytesOfTokensThatAreNotWholeCharacters) {
  GeneratedToken half;
  half.piece = "a\xC3";
  EXPECT_EQ(ProvenanceJson({half}), Json::parse(R"([{"text": "a\uFFFD", "drafter": null, "bytes": [97, 195]}])"));
}

}  // namespace
}  // namespace outrider
