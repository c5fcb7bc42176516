#include "engine/special_cuts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace outrider {
namespace {

using Texts = std::vector<std::string>;

SpecialCuts Make(const Texts& specials) {
  SpecialCuts cuts;
  for (const std::string& special : specials) cuts.Add(special, special.ends_with('~'));
  return cuts;
}

// What libllama does, in its simplest form: the longest first, each from left to right. Tokens in brackets, the text
// between them as it is; a token that ends with '~' takes the spaces after it.
std::string Partition(const std::string& text, Texts specials, size_t from = 0) {
  std::stable_sort(specials.begin(), specials.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (size_t i = from; i < specials.size(); ++i) {
    const size_t at = specials[i].empty() ? text.npos : text.find(specials[i]);
    if (at == text.npos) continue;
    size_t after = at + specials[i].size();
    while (specials[i].ends_with('~') && after < text.size() && text[after] == ' ') ++after;
    return Partition(text.substr(0, at), specials, i) + "[" + specials[i] + "]" +
           Partition(text.substr(after), specials, i);
  }
  return text.empty() ? "" : "(" + text + ")";
}

std::string Repeat(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(SpecialCutsTest, CutsAfterEverySoManySpecialTokens) {
  const SpecialCuts cuts = Make({"<s>", "</s>"});
  EXPECT_TRUE(cuts.Find("").empty());
  EXPECT_TRUE(cuts.Find(Repeat("no token", 10'000)).empty());
  const std::string one = "<s>text</s>";
  const size_t tokens = SpecialCuts::kTokensPerPiece;
  EXPECT_TRUE(cuts.Find(Repeat(one, tokens / 2)).empty()) << "the end is no cut";
  EXPECT_EQ(cuts.Find(Repeat(one, tokens)), (std::vector<size_t>{tokens / 2 * one.size()}));
  EXPECT_EQ(cuts.Find(Repeat(one, 10 * tokens)).size(), 19u);
}

TEST(SpecialCutsTest, DoesNotCutWhereTokensOverlapOrTakeSpace) {
  EXPECT_TRUE(Make({"<a>", "a><b"}).Find(Repeat("<a><b>", 1000)).empty());
  EXPECT_TRUE(Make({"<a~"}).Find(Repeat("<a~  x", 1000)).empty());
  EXPECT_FALSE(Make({"<a>", "a"}).Find(Repeat("<a>", 1000)).empty()) << "a part of another one";
}

RC_GTEST_PROP(SpecialCutsTest, ThePiecesGiveWhatTheWholeGives, ()) {
  const auto specials = *rc::gen::container<Texts>(
      *rc::gen::inRange(1, 5),
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab<~")))));
  const SpecialCuts cuts = Make(specials);
  // Mostly whole tokens, so that there are enough of them.
  std::string text;
  const int parts = *rc::gen::inRange(0, 300);
  for (int i = 0; i < parts; ++i) {
    text += *rc::gen::weightedOneOf<std::string>(
        {{4, rc::gen::elementOf(specials)},
         {1, rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab<~ .")))}});
  }
  std::string pieces;
  size_t begin = 0;
  for (const size_t end : cuts.Find(text)) {
    RC_ASSERT(end > begin);
    pieces += Partition(text.substr(begin, end - begin), specials);
    begin = end;
  }
  RC_ASSERT(pieces + Partition(text.substr(begin), specials) == Partition(text, specials));
}

}  // namespace
}  // namespace outrider
