#include "spec/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <vector>

#include "sampling/gumbel.h"

namespace outrider {
namespace {

std::vector<DraftToken> DraftOf(const std::vector<Token>& tokens) {
  std::vector<DraftToken> draft;
  for (const Token token : tokens) draft.push_back({token, 1.0f, 0});
  return draft;
}

struct Walk {
  int right;
  std::vector<Token> committed;
};

// The target says `truth`, row by row; nothing is committed after `stop_after` tokens.
Walk WalkAlong(const std::vector<Token>& draft, const std::vector<Token>& truth, size_t stop_after = 100) {
  Walk walk;
  walk.right = WalkDraft(
      std::span<const DraftToken>(DraftOf(draft)), [&](int row) { return truth[static_cast<size_t>(row)]; },
      [&](int row, Token token) {
        EXPECT_EQ(row, static_cast<int>(walk.committed.size()));
        walk.committed.push_back(token);
        return walk.committed.size() < stop_after;
      });
  return walk;
}

TEST(WalkDraftTest, CommitsTheTargetsTokensUpToTheFirstThatIsNotDrafted) {
  const Walk walk = WalkAlong({1, 2, 9, 4}, {1, 2, 3, 4, 5});
  EXPECT_EQ(walk.right, 2);
  EXPECT_EQ(walk.committed, std::vector<Token>({1, 2, 3}));
}

TEST(WalkDraftTest, ADraftThatIsAllRightBringsOneTokenMore) {
  const Walk walk = WalkAlong({1, 2}, {1, 2, 3});
  EXPECT_EQ(walk.right, 2);
  EXPECT_EQ(walk.committed, std::vector<Token>({1, 2, 3}));
}

TEST(WalkDraftTest, WithoutADraftOneTokenIsCommitted) {
  const Walk walk = WalkAlong({}, {7});
  EXPECT_EQ(walk.right, 0);
  EXPECT_EQ(walk.committed, std::vector<Token>({7}));
}

TEST(WalkDraftTest, StopsWhenToldToAndCountsTheTokenThatStoppedIt) {
  const Walk walk = WalkAlong({1, 2, 3}, {1, 2, 3, 4}, 2);
  EXPECT_EQ(walk.right, 2);
  EXPECT_EQ(walk.committed, std::vector<Token>({1, 2}));
}

TEST(DrawByRejectionTest, KeepsTheDraftedTokenWithProbabilityPOverQ) {
  const std::vector<TokenProbability> target = {{1, 0.25f}, {2, 0.75f}};
  const std::vector<TokenProbability> draft = {{1, 0.5f}, {2, 0.5f}};
  EXPECT_EQ(DrawByRejection(target, 1, draft, 0.49, 0.5), 1);
  EXPECT_EQ(DrawByRejection(target, 1, draft, 0.51, 0.5), 2);
  EXPECT_EQ(DrawByRejection(target, 2, draft, 0.999, 0.5), 2);
}

TEST(DrawByRejectionTest, ADraftWithoutDistributionIsCertain) {
  const std::vector<TokenProbability> target = {{1, 0.25f}, {2, 0.5f}, {3, 0.25f}};
  EXPECT_EQ(DrawByRejection(target, 1, {}, 0.24, 0.1), 1);
  EXPECT_EQ(DrawByRejection(target, 1, {}, 0.26, 0.66), 2);
  EXPECT_EQ(DrawByRejection(target, 1, {}, 0.26, 0.67), 3);
}

TEST(DrawByRejectionTest, WhatTheTargetForbidsIsNeverKept) {
  const std::vector<TokenProbability> target = {{4, 1.0f}};
  EXPECT_EQ(DrawByRejection(target, 9, std::vector<TokenProbability>{{9, 1.0f}}, 1e-9, 0.5), 4);
}

TEST(DrawByRejectionTest, WithoutATargetThereIsNoToken) {
  EXPECT_EQ(DrawByRejection({}, 1, {}, 0.5, 0.5), kNoToken);
}

TEST(DrawByRejectionTest, ATokenItsOwnDistributionDoesNotHoldLeavesTheTargetsDraw) {
  const std::vector<TokenProbability> target = {{1, 0.5f}, {2, 0.5f}};
  const std::vector<TokenProbability> draft = {{2, 1.0f}};
  EXPECT_EQ(DrawByRejection(target, 1, draft, 0.001, 0.4), 1);
  EXPECT_EQ(DrawByRejection(target, 1, draft, 0.001, 0.6), 2);
}

RC_GTEST_PROP(DrawByRejectionTest, SaysTheDraftedTokenExactlyIfItIsAccepted, ()) {
  const auto distribution = [](const std::vector<int>& weights) {
    std::vector<TokenProbability> result;
    float sum = 0;
    for (const int weight : weights) sum += static_cast<float>(weight);
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] > 0) result.push_back({static_cast<Token>(i), static_cast<float>(weights[i]) / sum});
    }
    return result;
  };
  const auto weights = [] {
    auto result = *rc::gen::container<std::vector<int>>(5, rc::gen::inRange(0, 4));
    ++result[*rc::gen::inRange<size_t>(0, 5)];
    return result;
  };
  const auto target = distribution(weights());
  const auto draft = distribution(weights());
  const TokenProbability drafted = draft[*rc::gen::inRange<size_t>(0, draft.size())];
  const double accept_coin = *rc::gen::inRange(1, 1000) / 1000.0, residual_coin = *rc::gen::inRange(1, 1000) / 1000.0;

  const Token drawn = DrawByRejection(target, drafted.token, draft, accept_coin, residual_coin);
  const auto in_target = [&](Token token) {
    return std::find_if(target.begin(), target.end(), [&](const auto& entry) { return entry.token == token; });
  };
  RC_ASSERT(in_target(drawn) != target.end());
  const auto found = in_target(drafted.token);
  const double p = found == target.end() ? 0 : found->probability;
  RC_ASSERT((drawn == drafted.token) == (accept_coin * drafted.probability < p));
}

// ---- Distributions: what speculation commits is distributed as what the target alone would say. ----

struct Distribution {
  std::vector<TokenProbability> entries;
  std::vector<Candidate> candidates;  // the same, to draw from
};

struct Settings {
  float temperature;
  size_t top_k;
  double top_p;
};

void PrintTo(const Settings& settings, std::ostream* out) {
  *out << "temperature " << settings.temperature << ", top-k " << settings.top_k << ", top-p " << settings.top_p;
}

constexpr int kVocabulary = 6;
constexpr int kDraws = 100'000;

// Two models that agree more or less; each looks at the last token.
std::vector<double> TargetLogits(Token last) {
  std::vector<double> logits;
  for (int i = 0; i < kVocabulary; ++i) logits.push_back(std::sin(1.7 * (i + 1) * (last + 2)) * 2);
  return logits;
}

std::vector<double> DraftLogits(Token last) {
  std::vector<double> logits = TargetLogits(last);
  for (int i = 0; i < kVocabulary; ++i) logits[static_cast<size_t>(i)] += std::cos(2.3 * i + last) * 1.2;
  return logits;
}

Distribution Filtered(const std::vector<double>& logits, const Settings& settings) {
  std::vector<TokenProbability> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double scale = settings.temperature > 0 ? settings.temperature : 1;
    all.push_back({static_cast<Token>(i), static_cast<float>(std::exp(logits[i] / scale))});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.probability > b.probability; });
  const auto normalise = [&] {
    double sum = 0;
    for (const auto& entry : all) sum += entry.probability;
    for (auto& entry : all) entry.probability = static_cast<float>(entry.probability / sum);
  };
  all.resize(settings.temperature > 0 ? std::min(settings.top_k, all.size()) : 1);
  normalise();
  double sum = 0;
  size_t kept = 0;
  while (kept < all.size() && sum < settings.top_p) sum += all[kept++].probability;
  all.resize(kept);
  normalise();

  Distribution result = {all, {}};
  for (const auto& entry : all) result.candidates.push_back({entry.token, std::log(entry.probability), 0});
  return result;
}

Token Draw(Distribution& from, uint64_t seed, Pos position) {
  return DrawToken({from.candidates.data(), from.candidates.size(), false}, 1.0f, seed, position);
}

// 99.9 % point of chi-square (Wilson and Hilferty). The seeds are fixed, so the outcome is too.
double ChiSquareLimit(int degrees) {
  const double part = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1 - part + 3.09 * std::sqrt(part), 3);
}

class SpeculationTest : public testing::TestWithParam<Settings> {
 protected:
  static constexpr int kTokens = 3;  // of each run; their joint distribution is compared
  static constexpr Token kPrompt = 2;

  SpeculationTest() {
    for (Token last = 0; last < kVocabulary; ++last) {
      target_.push_back(Filtered(TargetLogits(last), GetParam()));
      drafting_.push_back(Filtered(DraftLogits(last), GetParam()));
    }
  }

  Distribution& Target(Token last) { return target_[static_cast<size_t>(last)]; }
  Distribution& Drafting(Token last) { return drafting_[static_cast<size_t>(last)]; }

  std::vector<Token> Plain(uint64_t seed) {
    std::vector<Token> text = {kPrompt};
    for (Pos position = 0; position < kTokens; ++position) text.push_back(Draw(Target(text.back()), seed, position));
    return text;
  }

  // Drafts of two tokens, drawn and verified as the test likes, until the text is long enough. `draw_row` is given the
  // token drafted for its row, or kNoToken, and what it was drawn from.
  template <typename DrawDraft, typename DrawRow>
  std::vector<Token> Speculate(DrawDraft draw_draft, DrawRow draw_row) {
    constexpr size_t kDrafted = 2;
    std::vector<Token> text = {kPrompt};
    text.reserve(kTokens + 1);
    std::array<DraftToken, kDrafted> draft{};
    std::array<const Distribution*, kDrafted> from{};
    while (text.size() <= kTokens) {
      const auto start = static_cast<Pos>(text.size() - 1);
      Token last = text.back();
      for (size_t i = 0; i < kDrafted; ++i) {
        Distribution& distribution = Drafting(last);
        last = draw_draft(distribution, start + static_cast<Pos>(i));
        draft[i].token = last;
        from[i] = &distribution;
      }
      WalkDraft(
          std::span<const DraftToken>(draft),
          [&](int row) {
            const auto at = static_cast<size_t>(row);
            Distribution& target = Target(text.back());
            if (at == kDrafted) return draw_row(start + row, target, kNoToken, target);
            return draw_row(start + row, target, draft[at].token, *from[at]);
          },
          [&](int, Token token) {
            text.push_back(token);
            return text.size() <= kTokens;
          });
    }
    return text;
  }

  void ExpectDistribution(const std::vector<std::vector<Token>>& texts) {
    std::vector<double> expected(kVocabulary * kVocabulary * kVocabulary), observed(expected.size());
    const auto cell = [](Token a, Token b, Token c) {
      return static_cast<size_t>((a * kVocabulary + b) * kVocabulary + c);
    };
    for (const auto& a : Target(kPrompt).entries) {
      for (const auto& b : Target(a.token).entries) {
        for (const auto& c : Target(b.token).entries) {
          expected[cell(a.token, b.token, c.token)] =
              double{a.probability} * b.probability * c.probability * static_cast<double>(texts.size());
        }
      }
    }
    for (const auto& text : texts) ++observed[cell(text[1], text[2], text[3])];

    double chi_square = 0, rare_expected = 0, rare_observed = 0;
    int cells = 0;
    const auto count = [&](double is, double should_be) {
      chi_square += (is - should_be) * (is - should_be) / should_be;
      ++cells;
    };
    for (size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(observed[i], 0) << "the target never says that";
      } else if (expected[i] < 10) {
        rare_expected += expected[i];
        rare_observed += observed[i];
      } else {
        count(observed[i], expected[i]);
      }
    }
    if (rare_expected > 0) count(rare_observed, rare_expected);
    EXPECT_LE(chi_square, cells > 1 ? ChiSquareLimit(cells - 1) : 1e-6);
  }

 private:
  std::vector<Distribution> target_, drafting_;  // by last token
};

TEST_P(SpeculationTest, MatchingGivesTheTokensOfThePlainRun) {
  std::vector<std::vector<Token>> texts;
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    texts.push_back(Speculate(
        [&](Distribution& from, Pos position) { return Draw(from, seed, position); },
        [&](Pos position, Distribution& target, Token, const Distribution&) { return Draw(target, seed, position); }));
    ASSERT_EQ(texts.back(), Plain(seed)) << "seed " << seed;
  }
  ExpectDistribution(texts);
}

TEST_P(SpeculationTest, RejectionKeepsTheDistribution) {
  constexpr uint64_t kDraftSeed = 1 << 20, kAcceptSeed = 2 << 20, kResidualSeed = 3 << 20;
  std::vector<std::vector<Token>> texts;
  int draws = 0;  // a new position for each, so that nothing is drawn with the same noise twice
  for (uint64_t seed = 0; seed < kDraws; ++seed) {
    texts.push_back(Speculate([&](Distribution& from, Pos) { return Draw(from, kDraftSeed, ++draws); },
                              [&](Pos, Distribution& target, Token drafted, const Distribution& from) {
                                ++draws;
                                if (drafted == kNoToken) return Draw(target, kDraftSeed, draws);
                                return DrawByRejection(target.entries, drafted, from.entries,
                                                       PositionCoin(kAcceptSeed, draws, Coin::kAcceptDraft),
                                                       PositionCoin(kResidualSeed, draws, Coin::kResidual));
                              }));
  }
  ExpectDistribution(texts);
}

TEST_P(SpeculationTest, RejectionKeepsTheDistributionOfCertainDrafts) {
  constexpr uint64_t kSeed = 77;
  std::vector<std::vector<Token>> texts;
  int draws = 0;
  for (int run = 0; run < kDraws; ++run) {
    texts.push_back(Speculate([](const Distribution& from, Pos) { return from.entries.front().token; },
                              [&](Pos, Distribution& target, Token drafted, const Distribution&) {
                                draws += 2;
                                if (drafted == kNoToken) return Draw(target, kSeed, draws);
                                return DrawByRejection(target.entries, drafted, {},
                                                       PositionCoin(kSeed, draws, Coin::kAcceptDraft),
                                                       PositionCoin(kSeed, draws, Coin::kResidual));
                              }));
  }
  ExpectDistribution(texts);
}

INSTANTIATE_TEST_SUITE_P(Settings, SpeculationTest,
                         testing::Values(Settings{1.0f, 100, 1}, Settings{0.6f, 100, 1}, Settings{1.5f, 100, 1},
                                         Settings{1.0f, 3, 1}, Settings{1.0f, 100, 0.7}, Settings{0, 100, 1}));

}  // namespace
}  // namespace outrider
