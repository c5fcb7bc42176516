#include "drafters/suffix_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace outrider {
namespace {

using Text = std::vector<Token>;

// Small alphabets repeat a lot; now and then a border.
rc::Gen<Text> Texts() {
  return rc::gen::mapcat(rc::gen::inRange(1, 5), [](int letters) {
    return rc::gen::container<Text>(rc::gen::weightedOneOf<Token>(
        {{12, rc::gen::inRange<Token>(0, letters)}, {1, rc::gen::just(Token{kNoToken})}}));
  });
}

SuffixTree TreeOf(const Text& text) {
  SuffixTree tree;
  for (const Token token : text) tree.Append(token);
  return tree;
}

// Tokens before a_end and b_end that are the same.
int CommonSuffix(const Text& a, size_t a_end, const Text& b, size_t b_end) {
  int length = 0;
  while (a_end > 0 && b_end > 0 && a[a_end - 1] == b[b_end - 1] && a[a_end - 1] >= 0) --a_end, --b_end, ++length;
  return length;
}

// By definition: the longest suffix of text[0 .. end) that ends in `in` at or before `last`.
int LongestSuffix(const Text& text, size_t end, const Text& in, size_t last) {
  int longest = 0;
  for (size_t other = 1; other <= last; ++other) longest = std::max(longest, CommonSuffix(text, end, in, other));
  return longest;
}

TEST(SuffixTreeTest, FindsWhatOccurredBefore) {
  const SuffixTree tree = TreeOf({1, 2, 3, 4, 9, 2, 3});
  EXPECT_EQ(tree.Last().length, 2);
  EXPECT_EQ(tree.Last().next, 3);
  EXPECT_EQ(tree.Earlier(5).length, 0) << "9 is new";
}

TEST(SuffixTreeTest, LeadsThroughOccurrencesFromRecentToOld) {
  const SuffixTree tree = TreeOf({7, 1, 7, 2, 7, 3, 7});
  std::vector<int> nexts;
  for (auto found = tree.Last(); found.length > 0; found = tree.Earlier(found.next)) nexts.push_back(found.next);
  EXPECT_EQ(nexts, (std::vector<int>{5, 3, 1}));
}

TEST(SuffixTreeTest, NothingIsFoundAcrossBorders) {
  SuffixTree tree = TreeOf({1, 2, kNoToken, 3, 4});
  SuffixTree::Cursor cursor;
  for (const Token token : {1, 2, 3}) tree.Advance(cursor, token);
  EXPECT_EQ(tree.Length(cursor), 1);
  tree.Append(kNoToken);
  EXPECT_EQ(tree.Last().length, 0) << "borders are not equal";
}

RC_GTEST_PROP(SuffixTreeTest, KnowsTheLongestRepeatedSuffixOfEveryPrefix, ()) {
  const Text text = *Texts();
  SuffixTree tree;
  for (size_t i = 0; i < text.size(); ++i) {
    tree.Append(text[i]);
    RC_ASSERT(std::string(tree.CheckInvariants()) == "");
    RC_ASSERT(tree.Last().length == LongestSuffix(text, i + 1, text, i));
    RC_ASSERT(tree.Length(tree.End()) == tree.Last().length);
  }
}

RC_GTEST_PROP(SuffixTreeTest, ACursorKnowsTheLongestSuffixThatOccurs, ()) {
  const Text text = *Texts(), other = *Texts();
  const SuffixTree tree = TreeOf(text);
  SuffixTree::Cursor cursor;
  for (size_t i = 0; i < other.size(); ++i) {
    tree.Advance(cursor, other[i]);
    const SuffixTree::Occurrence found = tree.Find(cursor);
    RC_ASSERT(found.length == tree.Length(cursor));
    RC_ASSERT(found.length == LongestSuffix(other, i + 1, text, text.size()));
    RC_ASSERT(CommonSuffix(other, i + 1, text, static_cast<size_t>(found.next)) >= found.length);
  }
}

// The tree grows under the cursor: its match stays one, and is at least the best among what was there when the cursor
// passed.
RC_GTEST_PROP(SuffixTreeTest, ACursorStaysValidWhileTheTreeGrows, ()) {
  const Text text = *Texts(), other = *Texts();
  const auto steps = *rc::gen::container<std::vector<bool>>(text.size() + other.size(), rc::gen::arbitrary<bool>());
  SuffixTree tree;
  SuffixTree::Cursor cursor;
  size_t written = 0, read = 0, at_start = 0;
  for (const bool grow : steps) {
    if (grow && written < text.size()) tree.Append(text[written++]);
    if (!grow && read < other.size()) {
      if (read == 0) at_start = written;
      tree.Advance(cursor, other[read++]);
    }
    const SuffixTree::Occurrence found = tree.Find(cursor);
    RC_ASSERT(found.length == tree.Length(cursor));
    RC_ASSERT(found.length >= LongestSuffix(other, read, text, at_start));
    RC_ASSERT(CommonSuffix(other, read, text, static_cast<size_t>(found.next)) >= found.length);
  }
}

// A text that goes on from the tree's own, as a draft does.
RC_GTEST_PROP(SuffixTreeTest, TheEndGoesOnLikeAnyCursor, ()) {
  const Text text = *Texts(), more = *Texts();
  const SuffixTree tree = TreeOf(text);
  SuffixTree::Cursor cursor = tree.End();
  Text whole = text;
  for (const Token token : more) {
    tree.Advance(cursor, token);
    whole.push_back(token);
    RC_ASSERT(tree.Length(cursor) == LongestSuffix(whole, whole.size(), text, text.size()));
  }
}

RC_GTEST_PROP(SuffixTreeTest, NeverTakesMoreMemoryThanItSaid, ()) {
  SuffixTree tree = TreeOf(*Texts());
  const Text more = *Texts();
  const size_t bound = tree.BytesWith(more.size());
  for (const Token token : more) tree.Append(token);
  RC_ASSERT(tree.bytes() <= bound);
}

TEST(SuffixTreeTest, LongTextsOfOneTokenTakeLinearTime) {
  SuffixTree tree;
  for (int i = 0; i < 200'000; ++i) tree.Append(5);
  EXPECT_EQ(tree.Last().length, 199'999);
  SuffixTree::Cursor cursor;
  for (int i = 0; i < 200'000; ++i) tree.Advance(cursor, 5);
  EXPECT_EQ(tree.Length(cursor), 200'000);
}

}  // namespace
}  // namespace outrider
