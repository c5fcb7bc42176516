#include "bench/difference.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// Reports the probabilities of the tokens "a", "bc" and "de", and keeps the request.
class FakeEndpoint : public Endpoint {
 public:
  Result<BenchAnswer> Ask(const BenchRequest&) override { return BenchAnswer(); }
  Result<std::vector<RankedToken>> AskProbabilities(const BenchRequest& request) override {
    asked.push_back(request);
    return std::vector<RankedToken>{{"a", "x", 1}, {"bc", "bx", 0.25}, {"de", "y", 3}};
  }
  Status WaitUntilReady(Duration) override { return {}; }

  std::vector<BenchRequest> asked;
};

BenchRecord Record(const std::string& variant, int turn, const std::string& text, double temperature) {
  BenchRecord record;
  record.variant = variant;
  record.question.turn = turn;
  record.question.temperature = temperature;
  record.answer.text = text;
  return record;
}

struct Fixture {
  FakeEndpoint endpoint;
  BenchPlan plan{.variants = {{"plain", &endpoint}, {"other", nullptr}}, .prompts = {{"x", {"one", "two"}}}};

  std::string Explain(double temperature) {
    const std::vector<BenchRecord> records = {
        Record("plain", 0, "first", temperature), Record("other", 0, "first", temperature),
        Record("plain", 1, "abcde", temperature), Record("other", 1, "abx", temperature)};
    return ExplainDifference(plan, records, SummariseRecords(records).variants[1], endpoint);
  }
};

TEST(DifferenceTest, NamesThePlaceBothTextsAndHowCloseTheTokensWere) {
  Fixture f;
  EXPECT_EQ(f.Explain(0),
            "First in prompt 1 after 2 bytes: plain says \"cde\", other says \"x\". Token \"bc\" against \"bx\": the "
            "two best logits are 0.2500 apart.");
  ASSERT_EQ(f.endpoint.asked.size(), 1u);
  const std::vector<BenchMessage>& messages = f.endpoint.asked[0].messages;
  ASSERT_EQ(messages.size(), 3u) << "the turn before with its answer, then the turn that differs";
  EXPECT_EQ(messages[1].content, "first");
  EXPECT_EQ(messages[2].content, "two");
}

TEST(DifferenceTest, AboveTemperatureZeroProbabilitiesExplainNothing) {
  Fixture f;
  EXPECT_EQ(f.Explain(0.8), "First in prompt 1 after 2 bytes: plain says \"cde\", other says \"x\".");
  EXPECT_TRUE(f.endpoint.asked.empty());
}

}  // namespace
}  // namespace outrider
