#include "scheduler/draw_budget.h"

#include <gtest/gtest.h>

#include <memory>

namespace outrider {
namespace {

using std::chrono::milliseconds;

struct DrawBudgetTest : testing::Test {
  DrawBudgetTest() : sequences(3) {
    for (Sequence& sequence : sequences) sequence.generation = std::make_shared<Generation>(GenerationRequest());
  }

  // Which sequences took part in a step, as digits. Those in `expensive` take `draw` to draw, all others nothing.
  std::string Step(const std::string& expensive, Duration draw, Duration decode = milliseconds(10)) {
    budget.Choose(sequences, now);
    std::string part;
    now += decode;
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (!sequences[i].busy() || sequences[i].resting) continue;
      part += std::to_string(i);
      const Duration took = expensive.find(part.back()) != expensive.npos ? draw : Duration::zero();
      now += took;
      budget.Observe(sequences[i], took, decode, now);
    }
    return part;
  }

  std::vector<Sequence> sequences;
  DrawBudget budget;
  TimePoint now{};
};

TEST_F(DrawBudgetTest, ExpensiveDrawsTakeATenthOfTheTimeAndTakeTurns) {
  EXPECT_EQ(Step("12", milliseconds(100)), "012") << "nobody knows yet";
  Duration expensive{};
  std::string turns;
  const TimePoint start = now;
  for (int i = 0; i < 1000; ++i) {
    const TimePoint before = now;
    const std::string part = Step("12", milliseconds(100));
    EXPECT_EQ(part[0], '0') << "the others take part in every step";
    ASSERT_LE(part.size(), 2u) << "one expensive draw at a time";
    if (part.size() == 2) turns += part[1];
    expensive += now - before - milliseconds(10);
  }
  EXPECT_LE(expensive, (now - start) / 10 + milliseconds(100));
  EXPECT_GE(expensive, (now - start) / 12) << "they are not starved";
  EXPECT_EQ(turns.substr(0, 4), "1212");
}

TEST_F(DrawBudgetTest, NobodyRestsForNobody) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Step("012", milliseconds(100)), "012") << "all are expensive";
  sequences[0].generation = sequences[2].generation = nullptr;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Step("1", milliseconds(100)), "1") << "it is alone";
}

TEST_F(DrawBudgetTest, WhatTakesLessThanTheDecodeIsNotExpensive) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Step("1", milliseconds(15)), "012");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Step("1", milliseconds(90), milliseconds(100)), "012");
  Step("1", milliseconds(110), milliseconds(100));
  EXPECT_EQ(Step("1", milliseconds(0), milliseconds(100)), "02");
}

TEST_F(DrawBudgetTest, ASuspectIsFoundOutFirst) {
  Step("1", milliseconds(100));
  sequences[1].suspect = true;
  EXPECT_EQ(Step("1", milliseconds(100)), "012") << "who takes part is decided elsewhere";
}

}  // namespace
}  // namespace outrider
