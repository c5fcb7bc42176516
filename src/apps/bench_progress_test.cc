#include "apps/bench_progress.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

// 25 tokens per second after the first token.
BenchRecord Record() {
  BenchRecord record;
  record.variant = "auto";
  record.answer.tokens = 51;
  record.answer.arrivals = {1, 2};
  record.answer.seconds = 3;
  return record;
}

TEST(BenchProgressTest, ATerminalHasOneLineWithABar) {
  ManualClock clock;
  BenchProgress progress(4, /*terminal=*/true, clock);
  EXPECT_EQ(progress.End(), "") << "nothing was printed that could be removed";
  clock.Advance(std::chrono::seconds(10));
  EXPECT_EQ(progress.Add(Record()), "\r\033[K[#####               ] 1 of 4 answers, 30 s left, auto: 25.0 t/s");
  clock.Advance(std::chrono::seconds(590));
  EXPECT_EQ(progress.Add(Record()), "\r\033[K[##########          ] 2 of 4 answers, 10 min left, auto: 25.0 t/s");
  EXPECT_EQ(progress.End(), "\r\033[K");
}

TEST(BenchProgressTest, ALogGetsALineForEachTwentieth) {
  ManualClock clock;
  BenchProgress progress(100, /*terminal=*/false, clock);
  int lines = 0;
  std::string last;
  for (int i = 1; i <= 100; ++i) {
    const std::string line = progress.Add(Record());
    EXPECT_EQ(line.empty(), i % 5 != 0) << i;
    lines += line.empty() ? 0 : 1;
    last = line;
  }
  EXPECT_EQ(lines, 20);
  EXPECT_EQ(last, "100 of 100 answers, 0 s left, auto: 25.0 t/s\n");
  EXPECT_EQ(progress.End(), "");

  BenchProgress few(3, /*terminal=*/false, clock);
  for (int i = 0; i < 3; ++i) EXPECT_NE(few.Add(Record()), "") << "each is more than a twentieth";
}

}  // namespace
}  // namespace outrider
