#include "drafters/registry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

using Parameters = std::map<std::string, std::string>;

std::string ParseError(std::string_view text) {
  return ParseDrafterChoice(text).status().message();
}

TEST(ParseDrafterChoiceTest, NamesAndParameters) {
  const auto plain = ParseDrafterChoice("suffix");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->name, "suffix");
  EXPECT_TRUE(plain->parameters.empty());

  const auto full = ParseDrafterChoice("ngram-simple:size_n=8,size_m=16");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->name, "ngram-simple");
  EXPECT_EQ(full->parameters, (Parameters{{"size_n", "8"}, {"size_m", "16"}}));
}

TEST(ParseDrafterChoiceTest, ValuesMayHaveColonsAndEqualsSigns) {
  const auto choice = ParseDrafterChoice("ngram-cache:static=/a:b=c,dynamic=");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->parameters, (Parameters{{"static", "/a:b=c"}, {"dynamic", ""}}));
}

TEST(ParseDrafterChoiceTest, SaysWhatIsWrong) {
  EXPECT_EQ(ParseError(""), "'' does not begin with the name of a drafter");
  EXPECT_EQ(ParseError(":a=1"), "':a=1' does not begin with the name of a drafter");
  EXPECT_EQ(ParseError("suffix:"), "drafter suffix: '' is not of the form key=value");
  EXPECT_EQ(ParseError("suffix:a=1,"), "drafter suffix: '' is not of the form key=value");
  EXPECT_EQ(ParseError("suffix:=1"), "drafter suffix: '=1' is not of the form key=value");
  EXPECT_EQ(ParseError("suffix:a=1,a=2"), "drafter suffix: a is given twice");
}

RC_GTEST_PROP(ParseDrafterChoiceTest, TakesAnyText, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab:=,")));
  const auto choice = ParseDrafterChoice(text);
  if (!choice.ok()) return RC_ASSERT(!choice.status().message().empty());
  RC_ASSERT(text.starts_with(choice->name));
}

TEST(DrafterParametersTest, TypedAccess) {
  const DrafterChoice choice = {"test", {{"n", "7"}, {"yes", "on"}, {"no", "false"}, {"path", "/x"}}};
  DrafterParameters parameters(choice);
  EXPECT_EQ(parameters.Integer("n", 1, 0, 10), 7);
  EXPECT_EQ(parameters.Integer("m", 3, 0, 10), 3);
  EXPECT_TRUE(parameters.Flag("yes", false));
  EXPECT_FALSE(parameters.Flag("no", true));
  EXPECT_TRUE(parameters.Flag("neither", true));
  EXPECT_EQ(parameters.Text("path", ""), "/x");
  EXPECT_EQ(parameters.Text("other", "default"), "default");
  EXPECT_TRUE(parameters.Check().ok());
}

TEST(DrafterParametersTest, RemembersTheFirstBadValue) {
  for (const std::string value : {"", "x", "7x", " 7", "11", "-1", "99999999999"}) {
    const DrafterChoice choice = {"test", {{"n", value}, {"flag", "maybe"}}};
    DrafterParameters parameters(choice);
    EXPECT_EQ(parameters.Integer("n", 5, 0, 10), 5);
    EXPECT_TRUE(parameters.Flag("flag", true));
    EXPECT_EQ(parameters.Check().message(), "drafter test: n must be a whole number from 0 to 10, not '" + value + "'");
  }
}

TEST(DrafterParametersTest, UnknownParametersAreErrors) {
  const DrafterChoice choice = {"test", {{"zise_n", "7"}}};
  DrafterParameters none(choice);
  EXPECT_EQ(none.Check().message(), "drafter test has no parameters");
  DrafterParameters some(choice);
  some.Integer("size_n", 1, 0, 10);
  some.Flag("fast", true);
  EXPECT_EQ(some.Check().message(), "drafter test has no parameter zise_n; there are: size_n, fast");
}

TEST(DrafterParametersTest, ValuesWithoutAKeyAreForThoseWhoTakeThem) {
  const auto choice = ParseDrafterChoice("remote:host:8090,[::1]:8091,token=x");
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->name, "remote");
  DrafterParameters takes(*choice);
  EXPECT_EQ(takes.Values(), (std::vector<std::string>{"host:8090", "[::1]:8091"}));
  EXPECT_EQ(takes.Text("token", ""), "x");
  EXPECT_TRUE(takes.Check().ok());
  DrafterParameters does_not(*choice);
  EXPECT_EQ(does_not.Check().message(), "drafter remote: 'host:8090' is not of the form key=value");
}

TEST(RegistryTest, KindsHaveNamesAndSummaries) {
  std::set<std::string> names;
  for (const DrafterKind& kind : DrafterKinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " is there twice";
    EXPECT_FALSE(kind.summary.empty()) << kind.name;
  }
  for (const char* name : {"suffix", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(RegistryTest, MakesDraftersByName) {
  const FakeTokenizer tokenizer;
  for (const char* name : {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"}) {
    auto drafter = MakeDrafter({name, {}}, {2, tokenizer, nullptr});
    ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    EXPECT_EQ((*drafter)->traits().name, name);
    EXPECT_FALSE((*drafter)->traits().computes);
  }
}

TEST(RegistryTest, UnknownNamesListWhatThereIs) {
  const FakeTokenizer tokenizer;
  const auto drafter = MakeDrafter({"ngram", {}}, {2, tokenizer, nullptr});
  ASSERT_FALSE(drafter.ok());
  EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(drafter.status().message().starts_with("there is no drafter 'ngram'; there are: "));
  EXPECT_NE(drafter.status().message().find("ngram-simple"), std::string::npos);
}

TEST(RegistryTest, BadParametersAreErrors) {
  const FakeTokenizer tokenizer;
  const auto unknown = MakeDrafter({"ngram-simple", {{"n", "3"}}}, {2, tokenizer, nullptr});
  EXPECT_EQ(unknown.status().message(), "drafter ngram-simple has no parameter n; there are: size_n, size_m, min_hits");
  const auto bad = MakeDrafter({"ngram-simple", {{"size_n", "many"}}}, {2, tokenizer, nullptr});
  EXPECT_EQ(bad.status().message(), "drafter ngram-simple: size_n must be a whole number from 1 to 64, not 'many'");
}

}  // namespace
}  // namespace outrider
