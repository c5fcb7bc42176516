#include "drafters/retokenizer.h"

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

TEST(RetokenizerTest, SpellsTheTextInTheOtherTokens) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  const std::vector<Token> history = bytes.Tokenize("the seaside", true, SpecialTokens::kParse);
  Retokenizer retokenizer(bytes, words);
  retokenizer.Begin(history);
  retokenizer.Advance(history, history.size());
  EXPECT_EQ(Copy(retokenizer.Retokenize("")), words.Tokenize("the seaside", true, SpecialTokens::kParse));
  EXPECT_EQ(Copy(retokenizer.Retokenize(" the")), words.Tokenize("the seaside the", true, SpecialTokens::kParse));
  EXPECT_EQ(Copy(retokenizer.Retokenize("")), words.Tokenize("the seaside", true, SpecialTokens::kParse))
      << "of no effect";
}

TEST(RetokenizerTest, WhatFollowsMayChangeTheLastWord) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  std::vector<Token> history = bytes.Tokenize("the sea", true, SpecialTokens::kParse);
  Retokenizer retokenizer(bytes, words);
  retokenizer.Begin(history);
  retokenizer.Advance(history, history.size());
  for (const char c : std::string("side")) {
    history.push_back(c);
    retokenizer.Advance(history, 1);
  }
  EXPECT_EQ(Copy(retokenizer.Retokenize("")), words.Tokenize("the seaside", true, SpecialTokens::kParse));
}

TEST(RetokenizerTest, AnotherHistoryKeepsWhatBothBeginWith) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords);
  std::string text;
  for (int i = 0; i < 50; ++i) text += " the sea";
  const std::vector<Token> first = bytes.Tokenize(text + " ab", true, SpecialTokens::kParse);
  const std::vector<Token> second = bytes.Tokenize(text + " side", true, SpecialTokens::kParse);
  Retokenizer retokenizer(bytes, words);
  retokenizer.Begin(first);
  retokenizer.Advance(first, first.size());
  retokenizer.Begin(second);
  EXPECT_GT(retokenizer.consumed(), second.size() - 64);
  retokenizer.Advance(second, second.size());
  EXPECT_EQ(Copy(retokenizer.Retokenize("")), words.Tokenize(text + " side", true, SpecialTokens::kParse));
}

TEST(RetokenizerTest, ControlTokensStandForThemselves) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words({"<eos>", "the", " the"}, /*space_first=*/true);  // it knows one of the two by name
  std::vector<Token> history = bytes.Tokenize("the", true, SpecialTokens::kParse);
  history.push_back(FakeTokenizer::kEos);
  for (const char c : std::string("the")) history.push_back(c);
  Retokenizer retokenizer(bytes, words);
  retokenizer.Begin(history);
  retokenizer.Advance(history, history.size());
  const Token the = FakeWordTokenizer::kFirstWord + 1, eos = FakeWordTokenizer::kFirstWord;
  EXPECT_EQ(Copy(retokenizer.Retokenize("")), (std::vector<Token>{FakeWordTokenizer::kBos, the, eos, the}));
}

// Cuts everything in pairs, counted from the beginning of what it is given.
class Pairs : public FakeTokenizer {
 public:
  int vocabulary_size() const override { return 1 << 16; }
  std::vector<Token> Tokenize(std::string_view text, bool, SpecialTokens) const override {
    std::vector<Token> tokens;
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
      tokens.push_back(256 * static_cast<unsigned char>(text[i]) + static_cast<unsigned char>(text[i + 1]) + 1000);
    }
    if (text.size() % 2 == 1) tokens.push_back(static_cast<unsigned char>(text.back()));
    return tokens;
  }
  std::string Piece(Token token, bool) const override {
    if (token < 256) return {static_cast<char>(token)};
    return {static_cast<char>((token - 1000) / 256), static_cast<char>((token - 1000) % 256)};
  }
};

TEST(RetokenizerTest, TextWithoutACommonBoundaryIsSettledAllTheSame) {
  const Pairs pairs;
  const FakeWordTokenizer words({"bb", "bbb", "bbbbbb"});
  // One letter, then pairs; on the other side pieces of six from the first letter on, with no boundary in common.
  std::vector<Token> history = {'b'};
  for (int i = 0; i < 20'000; ++i) history.push_back(256 * 'b' + 'b' + 1000);
  Retokenizer retokenizer(pairs, words);
  retokenizer.Begin(history);
  retokenizer.Advance(history, history.size());
  const std::span<const Token> output = retokenizer.Retokenize("");
  EXPECT_EQ(Spell(words, output).size(), 40'001u);
  EXPECT_GT(retokenizer.settled() + 1500, output.size()) << "what is open stays short";
}

TEST(RetokenizerTest, CharactersAreNotCut) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words({"海", "辺"});
  std::string text;
  for (int i = 0; i < 300; ++i) text += i % 3 == 0 ? "海" : "波";  // one known, one spelt in bytes
  const std::vector<Token> history = bytes.Tokenize(text, false, SpecialTokens::kParse);
  Retokenizer retokenizer(bytes, words);
  retokenizer.Begin(history);
  for (size_t i = 0; i < history.size(); ++i) {
    retokenizer.Advance(history, 1);
    const std::span<const Token> output = retokenizer.output();
    if (retokenizer.settled() == 0 || retokenizer.settled() >= output.size()) continue;
    EXPECT_NE(words.Piece(output[retokenizer.settled()], false)[0] & 0xC0, 0x80) << i;
  }
  EXPECT_GT(retokenizer.settled(), 300u);
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

TEST(RetokenizerTest, WhatCannotBeSpeltIsLeftOutOnceItGetsLong) {
  const FakeTokenizer bytes;
  const LettersOnly letters;
  std::vector<Token> history = {'1'};
  Retokenizer retokenizer(bytes, letters);
  retokenizer.Begin(history);
  retokenizer.Advance(history, 1);
  EXPECT_TRUE(retokenizer.Retokenize("").empty());
  history.resize(10'000, '1');
  retokenizer.Advance(history, history.size());
  history.resize(20'000, 'a');
  retokenizer.Advance(history, history.size());
  EXPECT_FALSE(retokenizer.Retokenize("").empty());
}

// However the history is cut into pieces, the output spells the same text, and settled tokens do not change.
RC_GTEST_PROP(RetokenizerTest, SpellsAllOfTheTextAndNeverChangesSettledTokens, ()) {
  const FakeTokenizer bytes;
  const FakeWordTokenizer words(kWords, *rc::gen::arbitrary<bool>());
  const FakeWordTokenizer other({"he", " s", "eas", "ide", "b ", " a"});
  const Tokenizer& from = *rc::gen::arbitrary<bool>() ? static_cast<const Tokenizer&>(bytes) : other;
  std::string text;
  const int n_words = *rc::gen::inRange(1, 80);
  for (int i = 0; i < n_words; ++i) text += *rc::gen::elementOf(kWords);
  const std::vector<Token> history = from.Tokenize(text, *rc::gen::arbitrary<bool>(), SpecialTokens::kParse);
  Retokenizer retokenizer(from, words);
  retokenizer.Begin(history);
  std::vector<Token> settled;
  while (retokenizer.consumed() < history.size()) {
    retokenizer.Advance(history, *rc::gen::inRange<size_t>(1, 30));
    const std::span<const Token> output = retokenizer.Retokenize("");
    const std::string so_far = Spell(from, std::span(history).first(retokenizer.consumed()));
    RC_ASSERT(Spell(words, output) == so_far);
    RC_ASSERT(std::equal(settled.begin(), settled.end(), output.begin()));
    settled.assign(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(retokenizer.settled()));
    RC_ASSERT(settled.size() + 100 > output.size());
  }
}

}  // namespace
}  // namespace outrider
