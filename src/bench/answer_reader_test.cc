#include "bench/answer_reader.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

std::string Event(const std::string& json) {
  return "data: " + json + "\n\n";
}

TEST(AnswerReaderTest, CollectsTextWithTheTimeOfEachPiece) {
  ManualClock clock;
  AnswerReader reader(clock);
  clock.Advance(std::chrono::seconds(2));
  EXPECT_TRUE(reader.Feed(Event(R"({"choices":[{"delta":{"role":"assistant"}}]})")));
  EXPECT_TRUE(reader.Feed(Event(R"({"choices":[{"delta":{"reasoning_content":"hm, "}}]})")));
  clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(reader.Feed(Event(R"({"choices":[{"delta":{"content":"yes"}}]})")));
  EXPECT_FALSE(reader.complete());
  EXPECT_TRUE(reader.Feed(Event(R"({"choices":[{"delta":{},"finish_reason":"length"}]})")));
  EXPECT_TRUE(reader.complete());
  const BenchAnswer& answer = reader.answer();
  EXPECT_EQ(answer.text, "hm, yes");
  EXPECT_EQ(answer.arrivals, (std::vector<double>{2, 3})) << "an event without text is not a piece";
  EXPECT_EQ(answer.finish_reason, "length");
  EXPECT_EQ(reader.SecondsSinceSent(), 3);
  EXPECT_EQ(reader.error(), "");
}

TEST(AnswerReaderTest, TakesWhatTheServerReports) {
  ManualClock clock;
  AnswerReader reader(clock);
  reader.Feed(Event(R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":7}})"));
  reader.Feed(Event(R"({"timings":{"draft_n":4},"provenance":[{"text":"a"}]})"));
  reader.Feed(Event(R"({"provenance":[{"text":"b"},{"text":"c"}]})"));
  reader.Feed(Event("this is not JSON"));
  EXPECT_FALSE(reader.complete());
  reader.Feed(Event("[DONE]"));
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.answer().prompt_tokens, 3);
  EXPECT_EQ(reader.answer().tokens, 7);
  EXPECT_EQ(reader.answer().timings["draft_n"], 4);
  EXPECT_EQ(reader.answer().provenance.size(), 3u);
}

TEST(AnswerReaderTest, KeepsWhatAServerSaysAboutAFailure) {
  ManualClock clock;
  AnswerReader reader(clock);
  reader.Feed(Event(R"({"error":{"message":"out of\nmemory"}})"));
  EXPECT_EQ(reader.error(), ErrorMessage(R"({"error":{"message":"out of\nmemory"}})"));
  EXPECT_EQ(reader.error().find('\n'), std::string::npos);
  EXPECT_NE(reader.error().find("memory"), std::string::npos);
  EXPECT_EQ(ErrorMessage(R"({"error":"no such model"})"), "no such model");
  EXPECT_EQ(ErrorMessage("plain text"), "plain text");

  AnswerReader refused(clock);
  refused.Feed("<h1>Bad gateway</h1>");
  EXPECT_EQ(refused.raw(), "<h1>Bad gateway</h1>");
  EXPECT_FALSE(refused.complete());
}

}  // namespace
}  // namespace outrider
