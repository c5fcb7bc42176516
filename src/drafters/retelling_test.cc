#include "drafters/retelling.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/fake_tokenizer.h"
#include "engine/fake_word_tokenizer.h"

namespace outrider {
namespace {

std::string Spell(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.Piece(token, false);
  return text;
}

std::vector<Token> Copy(std::span<const Token> tokens) {
  return {tokens.begin(), tokens.end()};
}

const std::vector<std::string> kWords = {"the", " the", " sea", "sea", " seaside", "side", "ab", "  ", "é"};

TEST(TokenizeWithinTest, SpellsExactlyTheText) {
  const FakeWordTokenizer plain(kWords), spaced(kWords, true);
  for (const std::string text : {"the sea", " the sea", "  the", "side", "\nthe", "é", "x"}) {
    EXPECT_EQ(Spell(plain, TokenizeWithin(plain, text)), text);
    EXPECT_EQ(Spell(spaced, TokenizeWithin(spaced, text)), text);
  }
  EXPECT_EQ(TokenizeWithin(spaced, "the sea"), plain.Tokenize("the sea", false, SpecialTokens::kParse))
      << "the space in front took nothing with it";
}

TEST(RetellingTest, TellsTheTextInTheOtherTokens) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  const std::vector<Token> history = bytes.Tokenize("the seaside", true, SpecialTokens::kParse);
  Retelling retelling(bytes, words);
  retelling.Begin(history);
  retelling.Follow(history, history.size());
  EXPECT_EQ(Copy(retelling.Tell("")), words.Tokenize("the seaside", true, SpecialTokens::kParse));
  EXPECT_EQ(Copy(retelling.Tell(" the")), words.Tokenize("the seaside the", true, SpecialTokens::kParse));
  EXPECT_EQ(Copy(retelling.Tell("")), words.Tokenize("the seaside", true, SpecialTokens::kParse)) << "of no effect";
}

TEST(RetellingTest, WhatFollowsMayChangeTheLastWord) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  std::vector<Token> history = bytes.Tokenize("the sea", true, SpecialTokens::kParse);
  Retelling retelling(bytes, words);
  retelling.Begin(history);
  retelling.Follow(history, history.size());
  for (const char c : std::string("side")) {
    history.push_back(c);
    retelling.Follow(history, 1);
  }
  EXPECT_EQ(Copy(retelling.Tell("")), words.Tokenize("the seaside", true, SpecialTokens::kParse));
}

TEST(RetellingTest, AnotherHistoryKeepsWhatBothBeginWith) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  std::string text;
  for (int i = 0; i < 50; ++i) text += " the sea";
  const std::vector<Token> first = bytes.Tokenize(text + " ab", true, SpecialTokens::kParse);
  const std::vector<Token> second = bytes.Tokenize(text + " side", true, SpecialTokens::kParse);
  Retelling retelling(bytes, words);
  retelling.Begin(first);
  retelling.Follow(first, first.size());
  retelling.Begin(second);
  EXPECT_GT(retelling.followed(), second.size() - 64);
  retelling.Follow(second, second.size());
  EXPECT_EQ(Copy(retelling.Tell("")), words.Tokenize(text + " side", true, SpecialTokens::kParse));
}

// A vocabulary that has no bytes of its own.
class LettersOnly : public FakeTokenizer {
 public:
  std::vector<Token> Tokenize(std::string_view text, bool add_bos, SpecialTokens special) const override {
    std::string letters;
    for (const char c : text) letters += c >= 'a' && c <= 'z' ? c : '?';
    return FakeTokenizer::Tokenize(letters, add_bos, special);
  }
};

TEST(RetellingTest, WhatCannotBeSpeltIsNotToldAndGivenUpWhenItGetsLong) {
  const FakeTokenizer bytes;
  const LettersOnly letters;
  std::vector<Token> history = {'1'};
  Retelling retelling(bytes, letters);
  retelling.Begin(history);
  retelling.Follow(history, 1);
  EXPECT_TRUE(retelling.Tell("").empty());
  history.resize(10'000, '1');
  retelling.Follow(history, history.size());
  history.resize(20'000, 'a');
  retelling.Follow(history, history.size());
  EXPECT_FALSE(retelling.Tell("").empty());
}

// However the history is cut into pieces, the same text is told, and what is settled stays.
RC_GTEST_PROP(RetellingTest, TellsAllOfTheTextAndTakesNothingSettledBack, ()) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords, *rc::gen::arbitrary<bool>());
  const FakeWordTokenizer other({"he", " s", "eas", "ide", "b ", " a"});
  const Tokenizer& from = *rc::gen::arbitrary<bool>() ? static_cast<const Tokenizer&>(bytes) : other;
  std::string text;
  const int n_words = *rc::gen::inRange(1, 80);
  for (int i = 0; i < n_words; ++i) text += *rc::gen::elementOf(kWords);
  const std::vector<Token> history = from.Tokenize(text, *rc::gen::arbitrary<bool>(), SpecialTokens::kParse);
  Retelling retelling(from, words);
  retelling.Begin(history);
  std::vector<Token> settled;
  while (retelling.followed() < history.size()) {
    retelling.Follow(history, *rc::gen::inRange<size_t>(1, 30));
    const std::span<const Token> told = retelling.Tell("");
    const std::string so_far = Spell(from, std::span(history).first(retelling.followed()));
    RC_ASSERT(Spell(words, told) == so_far);
    RC_ASSERT(std::equal(settled.begin(), settled.end(), told.begin()));
    settled.assign(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(retelling.settled()));
    RC_ASSERT(settled.size() + 100 > told.size());
  }
}

}  // namespace
}  // namespace outrider
