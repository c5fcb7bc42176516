#include "spec/acceptance_model.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace outrider {
namespace {

double Uniform(std::mt19937& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

TEST(AcceptanceModelTest, AStrangersClaimsAreDiscounted) {
  const AcceptanceModel model(1);
  EXPECT_LT(model.Estimate(0, 0, 0.9f), 0.75);
  EXPECT_LT(model.Estimate(0, 0, 0.5f), 0.45);
  EXPECT_LT(model.TypicalAcceptance(0, 0), 0.45);
}

// Passages that are copied for a while, from 1 token to 60, and what lies between them. What is expected of a draft of
// 16 tokens is what comes of it, from early on: the tokens of one long passage are not taken for many observations.
TEST(AcceptanceModelTest, IsNotTooSureAfterAFewLongRuns) {
  double expected = 0, came = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    AcceptanceModel model(1);
    std::mt19937 random(seed);
    std::vector<bool> rights;
    while (rights.size() < 600) {
      rights.insert(rights.end(), static_cast<size_t>(60 * std::pow(Uniform(random), 3)), true);
      rights.insert(rights.end(), 1 + static_cast<size_t>(6 * Uniform(random)), false);
    }
    for (size_t at = 60; at + 16 < rights.size(); ++at) {
      if (at == 60) {
        for (size_t i = 0; i < at; ++i) model.Observe(0, 0.8f, rights[i]);
      }
      double survival = 1;
      for (int place = 0; place < 16; ++place) {
        survival *= model.Estimate(0, place, 0.8f);
        expected += survival;
      }
      for (size_t i = at; i < at + 16 && rights[i]; ++i) ++came;
      model.Observe(0, 0.8f, rights[at]);
    }
  }
  EXPECT_NEAR(expected / came, 1, 0.08);
}

TEST(AcceptanceModelTest, BoastsAreFoundOutSoon) {
  AcceptanceModel model(1);
  for (int i = 0; i < 12; ++i) model.Observe(0, 0.99f, false);
  EXPECT_LT(model.Estimate(0, 0, 0.99f), 0.1);
  EXPECT_LT(model.TypicalAcceptance(0, 0), 0.1);
}

TEST(AcceptanceModelTest, LearnsARateWhateverTheConfidenceSays) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    AcceptanceModel model(1);
    std::mt19937 random(1);
    double error = 0, typical_error = 0;
    for (int i = 0; i < 3000; ++i) {
      if (i >= 1000) {
        error += std::abs(model.Estimate(0, 0, 0.6f) - rate) / 2000;
        typical_error += std::abs(model.TypicalAcceptance(0, 1) - rate) / 2000;
      }
      model.Observe(0, 0.6f, Uniform(random) < rate);
    }
    EXPECT_LT(error, 0.06) << rate;
    EXPECT_LT(typical_error, 0.06) << rate;
  }
}

TEST(AcceptanceModelTest, LearnsWhatConfidencesMean) {
  AcceptanceModel model(1);
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const double confidence = i % 2 == 0 ? 0.95 : 0.4;
    model.Observe(0, static_cast<float>(confidence), Uniform(random) < (i % 2 == 0 ? 0.8 : 0.1));
  }
  EXPECT_NEAR(model.Estimate(0, 0, 0.95f), 0.8, 0.12);
  EXPECT_NEAR(model.Estimate(0, 0, 0.4f), 0.1, 0.1);
}

// A drafter that copies: passages of 60 tokens it knows, 200 between them that it does not.
TEST(AcceptanceModelTest, KnowsARunWhenItSeesOne) {
  AcceptanceModel model(1);
  std::mt19937 random(3);
  for (int i = 0; i < 5200; ++i) model.Observe(0, 0.7f, Uniform(random) < (i % 260 < 60 ? 0.98 : 0.05));
  EXPECT_LT(model.Estimate(0, 0, 0.7f), 0.15) << "the last passage ended long ago";
  EXPECT_GT(model.Estimate(0, 6, 0.7f), 0.8) << "a drafter that is right six times in a row is copying";
  for (int i = 0; i < 6; ++i) model.Observe(0, 0.7f, true);
  EXPECT_GT(model.Estimate(0, 0, 0.7f), 0.8);
  EXPECT_GT(model.TypicalAcceptance(0, 0), 0.8);
  for (int i = 0; i < 6; ++i) model.Observe(0, 0.7f, false);
  EXPECT_LT(model.Estimate(0, 0, 0.7f), 0.25);
}

TEST(AcceptanceModelTest, SequencesDifferButANewOneStartsFromTheRecord) {
  AcceptanceModel model(3);
  std::mt19937 random(4);
  for (int i = 0; i < 1000; ++i) {
    model.Observe(0, 0.6f, Uniform(random) < 0.9);
    model.Observe(1, 0.6f, Uniform(random) < 0.3);
  }
  EXPECT_GT(model.Estimate(0, 0, 0.6f), 0.7);
  EXPECT_LT(model.Estimate(1, 0, 0.6f), 0.5);
  EXPECT_NEAR(model.Estimate(2, 0, 0.6f), 0.6, 0.15);

  model.BeginSequence(0);
  EXPECT_DOUBLE_EQ(model.Estimate(0, 0, 0.6f), model.Estimate(2, 0, 0.6f));
}

TEST(AcceptanceModelTest, FollowsADrafterThatDies) {
  AcceptanceModel model(1);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) model.Observe(0, 0.8f, Uniform(random) < 0.9);
  int tokens = 0;
  for (; model.Estimate(0, 0, 0.8f) > 0.3; ++tokens) model.Observe(0, 0.8f, false);
  EXPECT_LE(tokens, 40);
}

TEST(AcceptanceModelTest, AConfidenceThatIsNoNumberDoesNoHarm) {
  AcceptanceModel model(1);
  model.Observe(0, NAN, true);
  EXPECT_LT(model.Estimate(0, 0, NAN), 1);
  EXPECT_GT(model.Estimate(0, 0, 0.9f), 0);
}

RC_GTEST_PROP(AcceptanceModelTest, EstimatesAreProbabilities, ()) {
  AcceptanceModel model(2);
  const auto outcomes = *rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(-20, 120), rc::gen::arbitrary<bool>()));
  for (const auto& [percent, right] : outcomes) {
    const float confidence = static_cast<float>(percent) / 100;
    model.Observe(0, confidence, right);
    for (const int place : {0, 1, 3, 30}) {
      RC_ASSERT(model.Estimate(0, place, confidence) > 0 && model.Estimate(0, place, confidence) < 1);
      RC_ASSERT(model.TypicalAcceptance(1, place) > 0 && model.TypicalAcceptance(1, place) < 1);
    }
  }
}

}  // namespace
}  // namespace outrider
