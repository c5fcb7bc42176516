#include "spec/policy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/step_split.h"

namespace outrider {
namespace {

constexpr int kContext = 100;

std::vector<double> Geometric(double chance, int tokens) {
  std::vector<double> survival;
  for (int i = 1; i <= tokens; ++i) survival.push_back(std::pow(chance, i));
  return survival;
}

CostCurve Line(double slope) {
  return CostCurve({{1, 0.01}, {2, 0.01 * (1 + slope)}});
}

CostCurve IceLake() {
  return CostCurve({{1, 1.0}, {2, 1.5}, {3, 1.8}, {4, 1.26}, {5, 1.6}, {8, 2.2}, {16, 3.8}});
}

constexpr RollbackCost kNoRollbackCost;

// Steps are computed as libllama does: those of sequences with equally many rows are one part. A running state has a
// free rollback of `snapshots` rows after a step of one part.
LayOutStep LikeLlama(int snapshots = StepLayout::kAllRows) {
  return [snapshots](std::span<const SequenceRows> step, StepLayout* layout) {
    constexpr int kMicroBatch = 512;
    StepSplit split(kMicroBatch, /*shared_memory=*/false, /*kept_tail=*/0);
    layout->parts.clear();
    for (const StepSplit::Part& part : split.Cut(step)) layout->parts.push_back(RowsOf(part));
    layout->free_rollback = snapshots == StepLayout::kAllRows || layout->parts.size() == 1 ? snapshots : 0;
  };
}

// Every sequence by itself; those of one row together if `gaps_filled`.
LayOutStep Apart(bool gaps_filled) {
  return [gaps_filled](std::span<const SequenceRows> step, StepLayout* layout) {
    layout->parts.clear();
    const bool plain = std::all_of(step.begin(), step.end(), [](const SequenceRows& s) { return s.rows == 1; });
    for (const SequenceRows& sequence : step) layout->parts.push_back(sequence.rows);
    if (plain && gaps_filled) layout->parts = {static_cast<int>(step.size())};
    layout->free_rollback = StepLayout::kAllRows;
  };
}

Policy MakePolicy(const CostCurve& curve, const RollbackCost& rollback = kNoRollbackCost,
                  const LayOutStep& lay_out = LikeLlama()) {
  return Policy(curve, rollback, lay_out);
}

// A step of sequences with these drafts. It outlives its outlook.
class Step {
 public:
  explicit Step(std::vector<double> draft, int rows = 1)
      : drafts_({std::move(draft)}), sequences_({{0, rows, drafts_[0]}}) {}
  Step(std::vector<std::vector<double>> drafts, int prompt_rows) : drafts_(std::move(drafts)) {
    for (const std::vector<double>& draft : drafts_) {
      sequences_.push_back({static_cast<SeqId>(sequences_.size()), 1, draft});
    }
    if (prompt_rows > 0) others_.push_back({static_cast<SeqId>(sequences_.size()), prompt_rows});
  }
  Step(const Step&) = delete;

  StepOutlook outlook() const { return {sequences_, others_, kContext}; }

 private:
  const std::vector<std::vector<double>> drafts_;
  std::vector<SequenceOutlook> sequences_;
  std::vector<SequenceRows> others_;
};

std::vector<int> Choose(Policy& policy, const std::vector<std::vector<double>>& drafts, int prompt_rows = 0,
                        int max_rows = 64) {
  std::vector<int> rows(drafts.size(), -1);
  policy.ChooseRows(Step(drafts, prompt_rows).outlook(), max_rows, rows);
  return rows;
}

const std::vector<double> kNoDraft;

// Steps of one sequence whose draft has these chances; returns how many had draft rows.
int StepsWithRows(CostCurve& curve, const std::vector<double>& draft, int steps, const CostCurve& truth) {
  Policy policy = MakePolicy(curve);
  int with_rows = 0;
  for (int i = 0; i < steps; ++i) {
    const int rows = Choose(policy, {draft})[0];
    with_rows += rows > 0 ? 1 : 0;
    const double seconds = truth.Seconds(1 + rows, kContext);
    const double tokens = 1 + std::accumulate(draft.begin(), draft.begin() + rows, 0.0);
    curve.Observe(1 + rows, kContext, seconds);
    policy.Observe(Step(draft).outlook(), rows, static_cast<int>(std::lround(tokens)), seconds);
  }
  return with_rows;
}

TEST(PolicyTest, WithoutDraftsThereIsNothingToChoose) {
  const CostCurve curve = Line(0.1);
  Policy policy = MakePolicy(curve);
  EXPECT_EQ(Choose(policy, {{}, {}}), std::vector<int>({0, 0}));
  EXPECT_EQ(policy.Gain(Step(kNoDraft).outlook(), 0), 0);
  EXPECT_EQ(policy.ChooseDraftLength(Step(kNoDraft).outlook(), 0.001), 0);
}

TEST(PolicyTest, RowsThatCostNothingAreAllWorthTaking) {
  const CostCurve curve = Line(0.0);
  Policy policy = MakePolicy(curve);
  const std::vector<double> draft = Geometric(0.5, 12);
  EXPECT_NEAR(policy.Gain(Step(draft).outlook(), 0), 1 - std::pow(0.5, 12), 1e-9);
  EXPECT_EQ(policy.ChooseDraftLength(Step(draft).outlook(), 0), 12);
  EXPECT_GT(Choose(policy, {draft})[0], 0);
}

TEST(PolicyTest, RowsThatCostAStepEachAreNotTaken) {
  const CostCurve curve = Line(1.0);
  Policy policy = MakePolicy(curve);
  EXPECT_EQ(Choose(policy, {Geometric(0.7, 12)}), std::vector<int>({0}));
}

TEST(PolicyTest, UncalibratedNothingIsDraftedOnHope) {
  const CostCurve curve;
  Policy policy = MakePolicy(curve);
  EXPECT_EQ(Choose(policy, {Geometric(0.7, 12)}), std::vector<int>({0}));
}

TEST(PolicyTest, LooksBeyondWidthsThatDoNotPay) {
  const CostCurve curve = IceLake();
  Policy policy = MakePolicy(curve);
  EXPECT_EQ(Choose(policy, {Geometric(0.5, 12)}), std::vector<int>({3})) << "two rows cost more than four";
  EXPECT_EQ(Choose(policy, {Geometric(0.4, 2)}), std::vector<int>({0})) << "and three rows do too";
}

TEST(PolicyTest, RowsGoToTheSurestDrafts) {
  const CostCurve curve = Line(0.1);
  Policy policy = MakePolicy(curve);
  const std::vector<int> rows = Choose(policy, {Geometric(0.95, 16), Geometric(0.3, 16), {}});
  EXPECT_GT(rows[0], 4);
  EXPECT_LE(rows[1], 1);
  EXPECT_EQ(rows[2], 0);
}

TEST(PolicyTest, ADraftMustPromiseMoreThanItCostsIfOthersWaitForIt) {
  // A second row for every sequence costs half a plain step, whatever their number.
  const auto gain = [](size_t sequences, double chance) {
    const auto n = static_cast<int>(sequences);
    const CostCurve curve({{n, 0.01}, {2 * n, 0.015}});
    Policy policy = MakePolicy(curve);
    const Step step(std::vector<std::vector<double>>(sequences, {chance}), 0);
    return policy.Gain(step.outlook(), 0);
  };
  EXPECT_EQ(gain(1, 0.48), 0);
  EXPECT_GT(gain(1, 0.57), 0) << "0.5 is what it costs";
  EXPECT_EQ(gain(4, 0.57), 0);
  EXPECT_GT(gain(4, 0.75), 0);
}

TEST(PolicyTest, APriceFollowsTheEnginesLayout) {
  const CostCurve curve({{1, 0.01}, {2, 0.015}, {4, 0.016}});
  Policy together = MakePolicy(curve), apart = MakePolicy(curve, kNoRollbackCost, Apart(false)),
         filled = MakePolicy(curve, kNoRollbackCost, Apart(true));
  const Step step(std::vector<std::vector<double>>(2, {0.9}), 0);
  EXPECT_DOUBLE_EQ(together.PlainSeconds(step.outlook()), 0.015);
  EXPECT_DOUBLE_EQ(apart.PlainSeconds(step.outlook()), 0.02);
  EXPECT_DOUBLE_EQ(filled.PlainSeconds(step.outlook()), 0.015);
  EXPECT_GT(together.Gain(step.outlook(), 0), apart.Gain(step.outlook(), 0)) << "two rows each: 1 ms more, or 10 ms";
  EXPECT_GT(apart.Gain(step.outlook(), 0), filled.Gain(step.outlook(), 0))
      << "drafts leave gaps as they are: 15 ms more";
}

TEST(PolicyTest, UnderLoadDraftsShrink) {
  // Free up to eight rows, then each costs a quarter of a step.
  const CostCurve curve({{1, 1.0}, {8, 1.0}, {12, 2.0}});
  Policy policy = MakePolicy(curve);
  const int alone = Choose(policy, {Geometric(0.8, 16)})[0];
  EXPECT_GE(alone, 7);
  const std::vector<int> crowded = Choose(policy, std::vector<std::vector<double>>(8, Geometric(0.4, 16)));
  EXPECT_EQ(*std::max_element(crowded.begin(), crowded.end()), 0);
}

TEST(PolicyTest, ALoneDraftAmongManySequencesIsAPartOfItsOwn) {
  // Two rows cost hardly more than one: worth it alone, but beside three others its rows are a second pass.
  const CostCurve curve({{1, 1.0}, {2, 1.1}, {3, 1.2}, {4, 1.3}, {8, 1.7}});
  Policy policy = MakePolicy(curve);
  const std::vector<double> draft = {0.6};
  EXPECT_EQ(Choose(policy, {draft}), std::vector<int>({1}));
  EXPECT_EQ(Choose(policy, {draft, {}, {}, {}}), std::vector<int>({0, 0, 0, 0}));
  EXPECT_EQ(Choose(policy, {draft, draft, draft, draft}), std::vector<int>({1, 1, 1, 1}));
}

TEST(PolicyTest, KeepsToTheRoomInTheBatch) {
  const CostCurve curve = Line(0.0);
  Policy policy = MakePolicy(curve);
  const std::vector<int> rows = Choose(policy, {Geometric(0.9, 8), Geometric(0.9, 8)}, 0, 5);
  EXPECT_LE(rows[0] + rows[1], 5);
  EXPECT_GE(rows[0] + rows[1], 4) << "two of each are computed in one part";
}

RC_GTEST_PROP(PolicyTest, TheLikeliestRowsAreTakenOrEquallyManyOfEachDraft, ()) {
  const auto chances = *rc::gen::container<std::vector<std::vector<int>>>(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 101)));
  RC_PRE(!chances.empty());
  std::vector<std::vector<double>> drafts;
  for (const auto& draft : chances) {
    double survival = 1;
    drafts.emplace_back();
    for (const int percent : draft) drafts.back().push_back(survival *= percent / 100.0);
  }
  const CostCurve curve = *rc::gen::arbitrary<bool>() ? IceLake() : Line(*rc::gen::inRange(0, 10) / 10.0);
  Policy policy = MakePolicy(curve);
  const int room = *rc::gen::inRange(0, 40);
  const std::vector<int> rows = Choose(policy, drafts, *rc::gen::inRange(0, 3), room);
  double min_taken = 1, max_left = 0;
  int total = 0;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto taken = static_cast<size_t>(rows[i]);
    RC_ASSERT(rows[i] >= 0 && taken <= drafts[i].size());
    total += rows[i];
    if (taken > 0) min_taken = std::min(min_taken, drafts[i][taken - 1]);
    if (taken < drafts[i].size()) max_left = std::max(max_left, drafts[i][taken]);
  }
  RC_ASSERT(total <= room);
  const auto longest = static_cast<size_t>(*std::max_element(rows.begin(), rows.end()));
  bool equally_many = true;
  for (size_t i = 0; i < drafts.size(); ++i) {
    equally_many = equally_many && static_cast<size_t>(rows[i]) == std::min(longest, drafts[i].size());
  }
  RC_ASSERT(equally_many || min_taken >= max_left);
}

TEST(PolicyTest, DraftingHasItsPrice) {
  const CostCurve curve = Line(0.05);
  Policy policy = MakePolicy(curve);
  const std::vector<double> outlook = Geometric(0.8, 20);
  const Step expected(outlook);
  const int free = policy.ChooseDraftLength(expected.outlook(), 0);
  const int expensive = policy.ChooseDraftLength(expected.outlook(), 0.002);
  EXPECT_GT(free, expensive);
  EXPECT_GT(expensive, 0);
  EXPECT_EQ(policy.ChooseDraftLength(expected.outlook(), 0.01), 0);
  EXPECT_GT(policy.Gain(expected.outlook(), 0), policy.Gain(expected.outlook(), 0.004));
  EXPECT_LT(policy.Gain(expected.outlook(), 1.0), 0);
}

TEST(PolicyTest, MinSurvivalIsTheCheapestRowsPrice) {
  const CostCurve line = Line(0.2), ice_lake = IceLake();
  EXPECT_NEAR(MakePolicy(line).MinSurvival(Step(kNoDraft).outlook(), 0), 0.2, 1e-9);
  EXPECT_NEAR(MakePolicy(line).MinSurvival(Step(kNoDraft).outlook(), 0.001), 0.3, 1e-9);
  EXPECT_EQ(MakePolicy(line).MinSurvival(Step(kNoDraft).outlook(), 1), 1);
  EXPECT_NEAR(MakePolicy(ice_lake).MinSurvival(Step(kNoDraft).outlook(), 0), 0.26 / 3, 1e-9);
}

TEST(PolicyTest, TakingBackHasItsPrice) {
  const CostCurve curve = Line(0.5);
  const std::vector<double> unsure = Geometric(0.6, 8), sure = Geometric(0.98, 8);
  const RollbackCost quick, slow_states{0.01, 0.01};
  Policy without = MakePolicy(curve), replaying = MakePolicy(curve, quick, LikeLlama(0)),
         slow = MakePolicy(curve, slow_states, LikeLlama(0)), on_device = MakePolicy(curve, slow_states, LikeLlama(8));
  EXPECT_GT(Choose(without, {unsure})[0], 0);
  EXPECT_EQ(Choose(replaying, {unsure})[0], 0) << "a row wrong is a row again, and its turn lost";
  EXPECT_GT(Choose(replaying, {sure})[0], 4);
  EXPECT_GT(Choose(slow, {sure})[0], 4) << "if a state is saved at all, then for a long draft";
  EXPECT_EQ(Choose(slow, {Geometric(0.9, 2)})[0], 0);
  EXPECT_EQ(Choose(on_device, {unsure}), Choose(without, {unsure}));
  EXPECT_EQ(on_device.Gain(Step(unsure).outlook(), 0), without.Gain(Step(unsure).outlook(), 0));
}

TEST(PolicyTest, DeviceSnapshotsDoNotHelpSequencesOfUnequalWidth) {
  const CostCurve curve = Line(0.05);
  const RollbackCost slow_states{0.02, 0.02};
  Policy on_device = MakePolicy(curve, slow_states, LikeLlama(8)),
         replaying = MakePolicy(curve, slow_states, LikeLlama(0)), without = MakePolicy(curve);
  const std::vector<double> draft = Geometric(0.6, 3);
  const Step even({draft, draft}, 0), uneven({draft, kNoDraft}, 0);
  EXPECT_EQ(on_device.Gain(even.outlook(), 0), without.Gain(even.outlook(), 0));
  EXPECT_EQ(on_device.Gain(uneven.outlook(), 0), replaying.Gain(uneven.outlook(), 0));
}

TEST(PolicyTest, TokensThatAreDecodedAgainMakeAnotherRollbackMoreExpensive) {
  const CostCurve curve = Line(0.1);
  Policy policy = MakePolicy(curve, kNoRollbackCost, LikeLlama(0));
  const std::vector<double> draft = Geometric(0.8, 8);
  EXPECT_GT(policy.Gain(Step(draft, 1).outlook(), 0), policy.Gain(Step(draft, 4).outlook(), 0));
  EXPECT_GT(policy.Gain(Step(draft, 4).outlook(), 0), policy.Gain(Step(draft, 16).outlook(), 0));
}

TEST(PolicyTest, WhereASwitchIsExpensiveAStepKeepsToTheShapeOfTheLast) {
  const std::vector<CostPoint> points = {{1, 0.01}, {2, 0.011}, {3, 0.012}};
  const CostCurve cheap(points), expensive(points, 0.03);
  const std::vector<double> draft = {0.5, 0.3};
  const auto choose = [&](const CostCurve& curve, int last_rows) {
    Policy policy = MakePolicy(curve);
    const Step step(draft);
    StepOutlook outlook = step.outlook();
    outlook.last_rows = last_rows;
    std::vector<int> rows(1);
    policy.ChooseRows(outlook, 64, rows);
    return rows[0];
  };
  EXPECT_EQ(choose(cheap, 1), 2);
  EXPECT_EQ(choose(expensive, 1), 0) << "not worth beginning for this";
  EXPECT_EQ(choose(expensive, 2), 1) << "but going on is";
  EXPECT_EQ(choose(expensive, 3), 2);
}

TEST(PolicyTest, WhereASwitchIsExpensiveUnequalWidthsAreMoreExpensive) {
  const std::vector<CostPoint> points = {{1, 0.01}, {2, 0.011}, {4, 0.013}};
  const CostCurve cheap(points), expensive(points, 0.03);
  const std::vector<double> draft = {0.9};
  Policy carefree = MakePolicy(cheap), careful = MakePolicy(expensive);
  const Step uneven({draft, kNoDraft}, 0);
  EXPECT_GE(carefree.Gain(uneven.outlook(), 0), 0);
  EXPECT_EQ(careful.Gain(uneven.outlook(), 0), 0);
}

// Whether a draft is verified if the step may take no longer than a plain one, but for the tokens that can be relied
// on.
struct Request {
  double savings;
  double patience = 1;
  int last_rows = 1;
};
bool IsVerified(const CostCurve& curve, const std::vector<double>& draft, const Request& request) {
  Policy policy = MakePolicy(curve);
  const Step step(draft);
  StepOutlook outlook = step.outlook();
  outlook.budget = {policy.PlainSeconds(outlook), std::span(&request.savings, 1), request.patience};
  outlook.last_rows = request.last_rows;
  return policy.Gain(outlook, 0) > 0;
}

TEST(PolicyTest, ARequestReliesOnLikelyTokensAndWithSavingsOnOthers) {
  const CostCurve curve = Line(0.5);
  EXPECT_FALSE(IsVerified(curve, {0.52}, {.savings = 0})) << "it pays, but the request cannot afford to lose";
  EXPECT_TRUE(IsVerified(curve, {0.52}, {.savings = 10}));
  EXPECT_TRUE(IsVerified(curve, {0.75}, {.savings = 0}));
  EXPECT_TRUE(IsVerified(curve, {0.75}, {.savings = -10})) << "the only way out of a debt";
}

TEST(PolicyTest, ASmallRiskIsTakenWhereALargeOneIsNot) {
  EXPECT_TRUE(IsVerified(Line(0.2), {0.21}, {.savings = 0}));
  EXPECT_FALSE(IsVerified(Line(0.6), {0.63}, {.savings = 0})) << "the same odds";
}

TEST(PolicyTest, OnlyARequestThatGoesOnForLongInvestsInASwitchOfShapes) {
  const CostCurve curve({{1, 0.01}, {2, 0.011}, {3, 0.012}}, /*switch_seconds=*/0.01);
  const std::vector<double> draft = {0.9, 0.8};
  EXPECT_FALSE(IsVerified(curve, draft, {.savings = 0, .patience = 1})) << "two switches";
  EXPECT_TRUE(IsVerified(curve, draft, {.savings = 0, .patience = 4}));
  EXPECT_TRUE(IsVerified(curve, draft, {.savings = -3, .patience = 1, .last_rows = 3})) << "they are paid";
}

TEST(PolicyTest, WhereASwitchIsExpensiveNumbersOfRowsAreNotTried) {
  const std::vector<CostPoint> points = {{1, 0.01}, {2, 0.018}};
  CostCurve cheap(points), expensive(points, /*switch_seconds=*/0.005);
  EXPECT_GT(StepsWithRows(cheap, {0.75}, 500, Line(0.8)), 0);
  EXPECT_EQ(StepsWithRows(expensive, {0.75}, 500, Line(0.8)), 0);
}

TEST(PolicyTest, SpeedUpIsMeasuredAndNeverBelowOne) {
  const CostCurve curve = Line(0.1);
  Policy policy = MakePolicy(curve);
  EXPECT_EQ(policy.speed_up(), 1);
  policy.Observe(Step(kNoDraft).outlook(), 0, 1, 0);  // the clock is too coarse for this step
  for (int i = 0; i < 200; ++i) policy.Observe(Step(kNoDraft).outlook(), 0, 3, 0.015);
  EXPECT_NEAR(policy.speed_up(), 2, 0.05);
  for (int i = 0; i < 2000; ++i) policy.Observe(Step(kNoDraft).outlook(), 0, 1, 0.03);
  EXPECT_EQ(policy.speed_up(), 1);
}

TEST(PolicyTest, WhileDraftsPayAPlainStepIsTakenNowAndThen) {
  CostCurve curve = Line(0.1);
  const int plain = 1000 - StepsWithRows(curve, Geometric(0.9, 8), 1000, Line(0.1));
  EXPECT_GE(plain, 3);
  EXPECT_LE(plain, 20);
}

TEST(PolicyTest, HopelessDraftsAreHardlyEverVerified) {
  CostCurve curve = Line(0.5);
  EXPECT_LE(StepsWithRows(curve, Geometric(0.1, 8), 2000, Line(0.5)), 10);
}

TEST(PolicyTest, ACalibrationThatMakesRowsTooExpensiveIsSeenThrough) {
  CostCurve curve = Line(0.9);
  EXPECT_GE(StepsWithRows(curve, Geometric(0.8, 8), 2000, Line(0.1)), 1500);
}

TEST(PolicyTest, ACalibrationThatMakesRowsTooCheapIsSeenThrough) {
  CostCurve curve = Line(0.05);
  EXPECT_LE(StepsWithRows(curve, Geometric(0.5, 8), 2000, Line(0.9)), 200);
}

}  // namespace
}  // namespace outrider
