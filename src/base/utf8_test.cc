#include "base/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace outrider {
namespace {

TEST(Utf8Test, KnowsWhatIsWellFormed) {
  for (const char* good : {"", "plain", "né", "漢字", "🙂", "\x7f", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(IsValidUtf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    EXPECT_FALSE(IsValidUtf8(bad));
  }
}

TEST(Utf8Test, FindsTheUnfinishedCharacter) {
  EXPECT_EQ(IncompleteUtf8Tail("abc"), 0U);
  EXPECT_EQ(IncompleteUtf8Tail("a\xF0\x9F\x99"), 3U);
  EXPECT_EQ(IncompleteUtf8Tail("a\xE6\xBC"), 2U);
  EXPECT_EQ(IncompleteUtf8Tail("a\xC3"), 1U);
  EXPECT_EQ(IncompleteUtf8Tail("🙂"), 0U);
  EXPECT_EQ(IncompleteUtf8Tail("\x80"), 0U) << "can never become a character";
  EXPECT_EQ(IncompleteUtf8Tail("\xF0\x80"), 0U) << "an overlong form can never become a character";
}

TEST(Utf8Test, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(ReplaceInvalidUtf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(ReplaceInvalidUtf8("ok 🙂"), "ok 🙂");
}

TEST(Utf8Test, MakesOneLineOfWhatAStrangerSaid) {
  EXPECT_EQ(OneLine("no such\nmodel: \x1B[31mé\x7F", 100), "no such model:  [31mé ");
  EXPECT_EQ(OneLine("\xC2\x9B"
                    "2J\xC2\xA0.",
                    100),
            " 2J\xC2\xA0.")
      << "a control sequence may begin without ESC";
  EXPECT_EQ(OneLine("aé", 2), "a") << "no half characters";
  EXPECT_EQ(OneLine("a\xC3", 2), "a\xEF\xBF\xBD");
}

RC_GTEST_PROP(Utf8Test, ALineIsValidAndOne, (const std::string& bytes)) {
  const std::string line = OneLine(bytes, 20);
  RC_ASSERT(IsValidUtf8(line));
  for (const char c : line) RC_ASSERT(static_cast<unsigned char>(c) >= ' ');
}

RC_GTEST_PROP(Utf8Test, ReplacingAlwaysGivesValidText, (const std::string& bytes)) {
  RC_ASSERT(IsValidUtf8(ReplaceInvalidUtf8(bytes)));
}

RC_GTEST_PROP(Utf8Test, ATextCutAnywhereIsAWholePartAndATail, ()) {
  const std::string text = "aé漢🙂z";
  const auto cut = *rc::gen::inRange<size_t>(0, text.size() + 1);
  const std::string head = text.substr(0, cut);
  RC_ASSERT(IsValidUtf8(head.substr(0, head.size() - IncompleteUtf8Tail(head))));
}

}  // namespace
}  // namespace outrider
