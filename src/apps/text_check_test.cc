#include "apps/text_check.h"

#include <gtest/gtest.h>

#include "engine/fake_engine.h"
#include "engine/fake_tokenizer.h"
#include "sampling/fake_filters.h"

namespace outrider {
namespace {

Continuations Continue(FakeEngine::Script script, int n_sequences, float temperature) {
  EngineInfo info;
  info.n_vocab = FakeTokenizer().vocabulary_size();
  info.n_sequences = n_sequences;
  info.sequence_length = 512;
  info.max_batch = info.micro_batch = info.max_outputs = 256;
  FakeEngine engine(info, std::move(script));
  const FakeTokenizer tokenizer;
  FakeFilterFactory filters;
  auto texts = ContinueTexts(engine, tokenizer, filters, nullptr, temperature);
  EXPECT_TRUE(texts.ok()) << texts.status().message();
  return *texts;
}

TEST(ContinueTextsTest, EveryTextIsContinuedToItsFullLength) {
  const auto hashing = FakeEngine::Hashing(FakeTokenizer().vocabulary_size());
  for (const float temperature : {0.0f, 0.8f}) {
    const Continuations together = Continue(hashing, 4, temperature), one_by_one = Continue(hashing, 1, temperature);
    ASSERT_EQ(together.tokens.size(), 4u);
    for (const std::vector<Token>& tokens : together.tokens) EXPECT_EQ(tokens.size(), 96u);
    EXPECT_EQ(together.drafted, 0);
    EXPECT_EQ(FirstDifference(together, one_by_one), "");
  }
}

TEST(ContinueTextsTest, AnotherModelIsNoticed) {
  const int n_vocab = FakeTokenizer().vocabulary_size();
  const auto hashing = FakeEngine::Hashing(n_vocab);
  const auto changed = [=](std::span<const Token> tokens) {
    return tokens.size() == 230 ? (hashing(tokens) + 1) % 256 : hashing(tokens);
  };
  EXPECT_NE(FirstDifference(Continue(hashing, 4, 0), Continue(changed, 4, 0)), "");
}

TEST(CompareTextsTest, TextsWithoutADraftAreSkipped) {
  const Continuations plain = {{{1, 2, 3}}}, drafted = {{{1, 2, 3}}, 5, 2}, other = {{{1, 2, 4}}, 5, 2};
  EXPECT_EQ(CompareTexts(plain, drafted).result, Comparison::kSame);
  EXPECT_EQ(CompareTexts(plain, drafted).detail, "2 of 5 draft tokens accepted");
  EXPECT_EQ(CompareTexts(plain, plain).result, Comparison::kSkipped);
  EXPECT_EQ(CompareTexts(plain, plain).detail, "this drafter made no draft for these texts");
  EXPECT_EQ(CompareTexts(plain, other).result, Comparison::kDifferent);
  EXPECT_EQ(CompareTexts(plain, other).detail, "text 1 differs from token 2 on");
  EXPECT_EQ(CompareTexts(plain, {{{1, 2, 4}}}).result, Comparison::kDifferent) << "though nothing was drafted";
}

TEST(FirstDifferenceTest, NamesTheTextAndTheToken) {
  const Continuations plain = {{{1, 2, 3}, {4, 5}}};
  EXPECT_EQ(FirstDifference(plain, plain), "");
  EXPECT_EQ(FirstDifference(plain, {{{1, 2, 3}, {4, 6}}}), "text 2 differs from token 1 on");
  EXPECT_EQ(FirstDifference(plain, {{{1, 2}, {4, 5}}}), "text 1 differs from token 2 on") << "one that ends too soon";
  EXPECT_EQ(FirstDifference(plain, {{{1, 2, 3}, {4, 5, 6}}}), "text 2 differs from token 2 on") << "and too late";
  EXPECT_EQ(FirstDifference(plain, {{{1, 2, 3}}}), "text 2 was not answered");
}

}  // namespace
}  // namespace outrider
