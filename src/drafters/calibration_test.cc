#include "drafters/calibration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "engine/fake_engine.h"

namespace outrider {
namespace {

// An engine whose steps take a scripted time.
class TimedEngine : public FakeEngine {
 public:
  TimedEngine(EngineInfo info, ManualClock& clock, std::function<double(int rows, int step)> seconds)
      : FakeEngine(std::move(info), FakeEngine::Hashing(200)), clock_(clock), seconds_(std::move(seconds)) {}

  Status Decode(const Batch& batch) override {
    clock_.Advance(
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_(batch.size(), step_++))));
    return FakeEngine::Decode(batch);
  }

 private:
  ManualClock& clock_;
  std::function<double(int, int)> seconds_;
  int step_ = 0;
};

EngineInfo Info(int max_outputs) {
  EngineInfo info;
  info.n_vocab = 258;
  info.n_sequences = 2;
  info.sequence_length = 100;
  info.max_batch = 64;
  info.micro_batch = 64;
  info.max_outputs = max_outputs;
  return info;
}

TEST(CalibrationTest, FindsTheCurveUnderNoise) {
  ManualClock clock;
  const auto truth = [](int rows) { return rows == 4 ? 0.012 : 0.01 * rows; };
  TimedEngine engine(Info(32), clock, [&](int rows, int step) { return truth(rows) * (step % 3 == 0 ? 1.8 : 1.0); });
  Batch left_over;
  left_over.Add({7, 0, 0, false});
  ASSERT_TRUE(engine.Decode(left_over).ok());
  const auto measured = MeasureCostCurve(engine, 1, std::chrono::seconds(3), clock);
  ASSERT_TRUE(measured.ok());
  EXPECT_TRUE(measured->steady);
  for (const int rows : {1, 2, 4, 8, 32}) EXPECT_NEAR(measured->curve.Seconds(rows, 0), truth(rows), 1e-6) << rows;
  EXPECT_EQ(engine.Length(0), 0);
}

TEST(CalibrationTest, TellsASwitchOfWidthsFromStepsInARow) {
  ManualClock clock;
  int last = 0;
  TimedEngine engine(Info(32), clock, [&](int rows, int) {
    const bool switched = std::exchange(last, rows) != rows;
    return 0.0001 * rows + (switched ? 0.012 : 0);
  });
  const auto measured = MeasureCostCurve(engine, 1, std::chrono::seconds(1), clock);
  ASSERT_TRUE(measured.ok());
  EXPECT_TRUE(measured->steady);
  EXPECT_NEAR(measured->curve.Seconds(8, 0), 0.0008, 1e-6);
  EXPECT_NEAR(measured->curve.SwitchSeconds(), 0.012, 1e-6);
}

TEST(CalibrationTest, ABusyMachineIsNoticed) {
  ManualClock clock;
  TimedEngine engine(Info(32), clock, [](int rows, int step) { return 0.02 * rows * (1 << (step * 7 % 10)); });
  const auto measured = MeasureCostCurve(engine, 1, std::chrono::milliseconds(100), clock);
  ASSERT_TRUE(measured.ok());
  EXPECT_FALSE(measured->steady);
}

TEST(CalibrationTest, ASlowModelIsMeasuredAtAFewWidthsOnly) {
  ManualClock clock;
  TimedEngine engine(Info(32), clock, [](int rows, int) { return 0.5 + 0.1 * rows; });
  const auto measured = MeasureCostCurve(engine, 1, std::chrono::seconds(1), clock);
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->curve.calibration().size(), 4u);
  EXPECT_LT(clock.Now().time_since_epoch(), std::chrono::seconds(12));
}

TEST(CalibrationTest, CurvesSurviveTheDisk) {
  const CostCurve curve({{1, 0.01}, {4, 0.013}, {8, 0.025}}, 0.005);
  const auto read = ParseCostCurve(DumpCostCurve(curve, "this machine"), "this machine");
  ASSERT_TRUE(read.ok());
  for (int rows = 1; rows < 12; ++rows) EXPECT_EQ(read->Seconds(rows, 0), curve.Seconds(rows, 0));
  EXPECT_EQ(read->SwitchSeconds(), 0.005);
  EXPECT_FALSE(ParseCostCurve(DumpCostCurve(curve, "this machine"), "another").ok());
  for (const char* text :
       {"", "{", "[]", R"({"key": "k"})", R"({"key": "k", "points": []})", R"({"key": "k", "points": [[1]]})",
        R"({"key": "k", "points": [[1, -1]]})", R"({"key": "k", "points": [[2, 1], [1, 1]]})",
        R"({"key": "k", "points": [[0, 1]]})", R"({"key": "k", "points": [[1, "x"]]})",
        R"({"key": "k", "points": [[1, 1e999]]})", R"({"key": "k", "points": [[1, 1]]})",
        R"({"key": "k", "points": [[1, 1]], "switch": "x"})", R"({"key": "k", "points": [[1, 1]], "switch": -1})"}) {
    EXPECT_FALSE(ParseCostCurve(text, "k").ok()) << text;
  }
}

TEST(CalibrationTest, IsKeptAndUsedAgain) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "outrider-calibration-test";
  std::filesystem::remove_all(folder);
  const std::string path = folder / "deep" / "curve.json";
  std::filesystem::create_directories(folder / "deep");
  std::ofstream(path) << DumpCostCurve(CostCurve({{1, 7.0}, {2, 8.0}}), "key");
  FakeEngine engine(Info(4), FakeEngine::Hashing(200));
  const auto kept = CalibratedCostCurve(engine, 1, std::chrono::milliseconds(1), path, "key", false);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->Seconds(1, 0), 7.0);
  EXPECT_TRUE(engine.batches().empty());
  const auto anew = CalibratedCostCurve(engine, 1, std::chrono::milliseconds(1), path, "key", true);
  ASSERT_TRUE(anew.ok());
  EXPECT_LT(anew->Seconds(1, 0), 1.0);
  const auto other =
      CalibratedCostCurve(engine, 1, std::chrono::milliseconds(1), "/proc/no/such/place", "other", false);
  EXPECT_TRUE(other.ok()) << "a curve that cannot be kept is still a curve";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace outrider
