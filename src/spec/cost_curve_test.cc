#include "spec/cost_curve.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace outrider {
namespace {

constexpr int kContext = 100;

using Cost = std::function<double(int rows)>;

double Mild(int rows) {
  return 0.01 * (1 + 0.1 * (rows - 1));
}

CostCurve CalibratedAs(const Cost& cost) {
  std::vector<CostPoint> points;
  for (const int rows : {1, 2, 3, 4, 6, 8, 12, 16, 32, 64}) points.push_back({rows, cost(rows)});
  return CostCurve(std::move(points));
}

double Relative(const CostCurve& curve, int rows, int context = kContext) {
  return curve.Seconds(rows, context) / curve.Seconds(1, context);
}

// A machine whose steps scatter by 15 %, and sometimes take three times as long.
class Machine {
 public:
  explicit Machine(Cost cost) : cost_(std::move(cost)) {}

  void Step(CostCurve& curve, int rows, int context = kContext) {
    const bool busy = std::uniform_real_distribution<double>(0, 1)(random_) < 0.01;
    const double noise = busy ? 3 : std::max(0.5, std::normal_distribution<double>(1, 0.15)(random_));
    curve.Observe(rows, context, cost_(rows) * noise);
  }

 private:
  Cost cost_;
  std::mt19937 random_{7};
};

TEST(CostCurveTest, BeforeAnyMeasurementRowsHaveTheirFullPrice) {
  const CostCurve curve;
  EXPECT_DOUBLE_EQ(Relative(curve, 5), 5);
  EXPECT_TRUE(curve.calibration().empty());
}

TEST(CostCurveTest, IsStraightBetweenPointsAndGoesOnPastTheLast) {
  const CostCurve curve({{2, 0.02}, {4, 0.01}, {8, 0.03}});
  EXPECT_DOUBLE_EQ(curve.Seconds(1, kContext), 0.02);
  EXPECT_DOUBLE_EQ(curve.Seconds(2, kContext), 0.02);
  EXPECT_DOUBLE_EQ(curve.Seconds(3, kContext), 0.015);
  EXPECT_DOUBLE_EQ(curve.Seconds(4, kContext), 0.01);
  EXPECT_DOUBLE_EQ(curve.Seconds(6, kContext), 0.02);
  EXPECT_DOUBLE_EQ(curve.Seconds(12, kContext), 0.05);
}

TEST(CostCurveTest, NeverFallsPastTheLastPoint) {
  const CostCurve curve({{1, 0.02}, {2, 0.01}});
  EXPECT_DOUBLE_EQ(curve.Seconds(50, kContext), 0.01);
}

TEST(CostCurveTest, OnePointIsEnough) {
  const CostCurve curve({{4, 0.02}});
  EXPECT_DOUBLE_EQ(curve.Seconds(1, kContext), 0.02);
  EXPECT_DOUBLE_EQ(curve.Seconds(8, kContext), 0.04);
}

TEST(CostCurveTest, TheFirstStepSetsTheLevelWhateverItIs) {
  CostCurve curve;
  curve.Observe(1, kContext, 3.0);
  EXPECT_NEAR(curve.Seconds(1, kContext), 3.0, 1e-9);
  EXPECT_NEAR(curve.Seconds(4, kContext), 12.0, 1e-9);
}

TEST(CostCurveTest, AMachineThatSlowsDownIsFollowedAndTheShapeStays) {
  CostCurve curve = CalibratedAs(Mild);
  Machine fast(Mild), slow([](int rows) { return 2 * Mild(rows); });
  for (int i = 0; i < 200; ++i) fast.Step(curve, i % 16 == 0 ? 1 : 4);
  for (int i = 0; i < 40; ++i) slow.Step(curve, 4);
  EXPECT_NEAR(curve.Seconds(4, kContext) / Mild(4), 2, 0.25);
  EXPECT_NEAR(Relative(curve, 4) / (Mild(4) / Mild(1)), 1, 0.15) << "though it has seen no other width since";
  EXPECT_NEAR(Relative(curve, 8) / (Mild(8) / Mild(1)), 1, 0.2) << "though it has never seen this one";
}

TEST(CostCurveTest, OneOutlierMovesLittle) {
  CostCurve curve = CalibratedAs(Mild);
  for (int i = 0; i < 50; ++i) curve.Observe(1 + i % 8, kContext, Mild(1 + i % 8));
  const double before = curve.Seconds(3, kContext), shape = Relative(curve, 3);
  curve.Observe(3, kContext, 10 * Mild(3));
  EXPECT_NEAR(curve.last_ratio(), 10, 0.5);
  EXPECT_NEAR(curve.Seconds(3, kContext) / before, 1, 0.1);
  EXPECT_NEAR(Relative(curve, 3) / shape, 1, 0.05);
}

TEST(CostCurveTest, NoiseMakesNoBargains) {
  CostCurve curve = CalibratedAs(Mild);
  Machine machine(Mild);
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    machine.Step(curve, std::uniform_int_distribution<int>(1, 16)(random));
    if (i % 10 != 0) continue;
    for (int rows = 2; rows <= 16; ++rows) EXPECT_NEAR(Relative(curve, rows) / (Mild(rows) / Mild(1)), 1, 0.12);
    // The best width for drafts that are right four times in five is nearly the best in truth.
    const auto tokens = [](int rows) { return (1 - std::pow(0.8, rows)) / 0.2; };
    int best = 1, chosen = 1;
    for (int rows = 2; rows <= 16; ++rows) {
      if (tokens(rows) / Mild(rows) > tokens(best) / Mild(best)) best = rows;
      if (tokens(rows) / curve.Seconds(rows, kContext) > tokens(chosen) / curve.Seconds(chosen, kContext))
        chosen = rows;
    }
    EXPECT_GE(tokens(chosen) / Mild(chosen), 0.95 * tokens(best) / Mild(best)) << "after " << i;
  }
}

TEST(CostCurveTest, AWrongShapeIsNoticedEvenForWidthsNotSeen) {
  CostCurve curve = CalibratedAs(Mild);
  const Cost truth = [](int rows) { return 0.01 * (1 + 0.5 * (rows - 1)); };
  Machine machine(truth);
  for (int i = 0; i < 30; ++i) {
    for (const int rows : {1, 4, 8}) machine.Step(curve, rows);
  }
  EXPECT_NEAR(Relative(curve, 8) / (truth(8) / truth(1)), 1, 0.12);
  EXPECT_NEAR(Relative(curve, 4) / (truth(4) / truth(1)), 1, 0.12);
  EXPECT_GT(Relative(curve, 16), 2.5 * Mild(16) / Mild(1));
  EXPECT_GT(Relative(curve, 6), 1.3 * Mild(6) / Mild(1));
}

TEST(CostCurveTest, ABumpAtOneWidthIsLearned) {
  CostCurve curve = CalibratedAs(Mild);
  Machine machine([](int rows) { return rows == 6 ? 2 * Mild(6) : Mild(rows); });
  for (int i = 0; i < 60; ++i) {
    for (const int rows : {1, 5, 6, 7, 8}) machine.Step(curve, rows);
  }
  EXPECT_GT(Relative(curve, 6), 1.6 * Mild(6) / Mild(1));
  EXPECT_NEAR(Relative(curve, 7) / (Mild(7) / Mild(1)), 1, 0.1);
}

TEST(CostCurveTest, ContextsAreKeptApartAndNewOnesStartFromTheLast) {
  CostCurve curve = CalibratedAs(Mild);
  Machine near(Mild), far([](int rows) { return Mild(rows) * (1 + 0.1 * rows); });
  for (int i = 0; i < 100; ++i) near.Step(curve, 1 + i % 8, 100);
  for (int i = 0; i < 100; ++i) far.Step(curve, 1 + i % 8, 5000);
  EXPECT_NEAR(Relative(curve, 8, 100) / (Mild(8) / Mild(1)), 1, 0.12);
  EXPECT_NEAR(Relative(curve, 8, 5000) / (Mild(8) / Mild(1) * 1.8 / 1.1), 1, 0.15);
  EXPECT_DOUBLE_EQ(curve.Seconds(8, 20'000), curve.Seconds(8, 5000));
}

TEST(CostCurveTest, WhatIsSeenIsLessUncertain) {
  CostCurve curve = CalibratedAs(Mild);
  const double before = curve.Uncertainty(8, 1, kContext);
  EXPECT_EQ(curve.Uncertainty(1, 1, kContext), 0);
  for (int i = 0; i < 20; ++i) curve.Observe(i % 2 == 0 ? 1 : 8, kContext, Mild(i % 2 == 0 ? 1 : 8));
  EXPECT_LT(curve.Uncertainty(8, 1, kContext), before / 3);
  EXPECT_LT(curve.Uncertainty(8, 1, kContext), curve.Uncertainty(30, 1, kContext));
}

TEST(CostCurveTest, AStepWithoutDurationTellsNothing) {
  CostCurve curve = CalibratedAs(Mild);
  curve.Observe(1, kContext, 0);
  EXPECT_DOUBLE_EQ(curve.Seconds(1, kContext), Mild(1));
}

RC_GTEST_PROP(CostCurveTest, StaysFiniteAndPositive, ()) {
  CostCurve curve = *rc::gen::arbitrary<bool>() ? CalibratedAs(Mild) : CostCurve();
  const auto steps = *rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 600), rc::gen::inRange(-40, 10)));
  for (const auto& [rows, magnitude] : steps) {
    const int context = rows * 37 % 9000;
    curve.Observe(rows, context, std::exp2(magnitude));
    for (const int other : {1, 7, 64, 65, 1000}) {
      RC_ASSERT(std::isfinite(curve.Seconds(other, context)) && curve.Seconds(other, context) > 0);
      RC_ASSERT(curve.Uncertainty(other, 1, context) >= 0);
    }
  }
}

TEST(CostCurveTest, PartsAreComputedOneAfterTheOther) {
  const CostCurve curve({{1, 1.0}, {2, 1.5}, {4, 2.0}, {6, 7.0}});
  EXPECT_DOUBLE_EQ(curve.Seconds(std::vector<int>{2}, 0), 1.5);
  EXPECT_DOUBLE_EQ(curve.Seconds(std::vector<int>{4, 2}, 0), 3.5);
  EXPECT_DOUBLE_EQ(curve.Seconds(std::vector<int>{2, 2, 1}, 0), 4);
  EXPECT_EQ(curve.Seconds(std::vector<int>{}, 0), 0);
}

TEST(CostCurveTest, AStepOfSeveralPartsTeachesToo) {
  CostCurve curve({{1, 0.01}, {2, 0.015}, {4, 0.02}, {32, 0.1}});
  curve.Observe(1, 0, 0.01);
  const auto seconds = [&] { return curve.Seconds(4, 0) + curve.Seconds(31, 0); };
  const double before = seconds();
  for (int i = 0; i < 12; ++i) curve.Observe(std::vector<int>({4, 31}), 0, 2 * before);
  EXPECT_NEAR(seconds(), 2 * before, 0.1 * before) << "as long as it took";
  EXPECT_GT(curve.Seconds(8, 0), 1.5 * (0.02 + 0.08 * 4 / 28)) << "and widths in between go with it";
  EXPECT_NEAR(curve.last_ratio(), 1, 0.1);
}

TEST(CostCurveTest, ASwitchOfShapesIsMentionedIfItMatters) {
  EXPECT_EQ(CostCurve({{1, 0.01}, {2, 0.012}}, 0.02).SwitchSeconds(), 0.02);
  EXPECT_EQ(CostCurve({{1, 0.01}, {2, 0.012}}, 0.001).SwitchSeconds(), 0);
  EXPECT_EQ(CostCurve().SwitchSeconds(), 0);
}

}  // namespace
}  // namespace outrider
