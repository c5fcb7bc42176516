#include "apps/command_line.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace outrider {
namespace {

using Words = std::vector<std::string>;

TEST(CommandLineTest, SplitsAsAShellDoes) {
  EXPECT_EQ(*SplitWords(""), Words{});
  EXPECT_EQ(*SplitWords("  \t\n"), Words{});
  EXPECT_EQ(*SplitWords(" --spec  suffix\n--draft-max 8 "), (Words{"--spec", "suffix", "--draft-max", "8"}));
  EXPECT_EQ(*SplitWords("'two words' \"and a 'third'\""), (Words{"two words", "and a 'third'"}));
  EXPECT_EQ(*SplitWords("--flag='a b'c ''"), (Words{"--flag=a bc", ""})) << "quotes join what touches them";
  for (const char* open : {"'", "a 'b", "a \"b'"}) EXPECT_FALSE(SplitWords(open).ok()) << open;
}

TEST(CommandLineTest, PrintsWhatAShellWouldUnderstand) {
  EXPECT_EQ(PrintableCommandLine({"/usr/bin/outrider", "bench", "--variant", "a=--spec none", ""}),
            "outrider bench --variant 'a=--spec none' ''");
  EXPECT_EQ(PrintableCommandLine({"x", "it's", "a$b", "a*"}), "x 'it'\\''s' 'a$b' 'a*'");
  EXPECT_EQ(PrintableCommandLine({}), "");
}

TEST(CommandLineTest, SecretsAreNotPrinted) {
  EXPECT_EQ(PrintableCommandLine({"x", "--api-key", "secret", "--out", "o"}), "x --api-key ... --out o");
  EXPECT_EQ(PrintableCommandLine({"x", "--api-key=secret"}), "x --api-key=...");
  EXPECT_EQ(PrintableCommandLine({"x", "-hft", "secret", "--hf-token", "secret"}), "x -hft ... --hf-token ...");
  EXPECT_EQ(PrintableCommandLine({"x", "--flags", "-v --api-key secret"}), "x --flags '-v --api-key ...'");
  EXPECT_EQ(PrintableCommandLine({"x", "--flags", "-v --api-key=secret"}), "x --flags '-v --api-key=...'");
  EXPECT_EQ(PrintableCommandLine({"x", "--admin-key", "secret", "-v"}), "x --admin-key ... -v");
  EXPECT_EQ(PrintableCommandLine({"x", "--spec", "remote:host:1,token=secret,n_max=3"}),
            "x --spec remote:host:1,token=...,n_max=3");
  EXPECT_EQ(PrintableCommandLine({"x", "--variant", "far=--spec remote:host:1,token=secret --draft-max 8"}),
            "x --variant 'far=--spec remote:host:1,token=... --draft-max 8'");
}

// SplitWords knows quotes, but no backslash, so words with a quote in them are left out here.
RC_GTEST_PROP(CommandLineTest, WhatIsPrintedSplitsIntoTheSameWords, ()) {
  const auto words = *rc::gen::container<Words>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc-= \t\n\"$&|;<>*?()#!`\\"))));
  Words all = {"program"};
  all.insert(all.end(), words.begin(), words.end());
  RC_ASSERT(*SplitWords(PrintableCommandLine(all)) == all);
}

TEST(CommandLineTest, KnowsHowThisProcessWasStarted) {
  const Words words = OwnCommandLine();
  ASSERT_FALSE(words.empty());
  EXPECT_NE(words[0].find("apps_test"), std::string::npos);
}

}  // namespace
}  // namespace outrider
