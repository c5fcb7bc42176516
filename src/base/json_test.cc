#include "base/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(JsonTest, KeepsTheOrderOfKeys) {
  auto json = ParseJson(R"({"z":1,"a":[true,null]})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(DumpJson(*json), R"({"z":1,"a":[true,null]})");
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const char* bad : {"", "{", "nope", "{\"a\":1}}", "[1,]", "\"\xFF\""}) EXPECT_FALSE(ParseJson(bad).ok()) << bad;
}

TEST(JsonTest, RefusesDeepNestingBeforeBuildingIt) {
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  const auto result = ParseJson(deep);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("nested"), std::string::npos);
  EXPECT_TRUE(ParseJson(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')).ok());
  EXPECT_FALSE(ParseJson(std::string(kMaxJsonDepth + 1, '[') + std::string(kMaxJsonDepth + 1, ']')).ok());
}

TEST(JsonTest, BracketsInsideStringsAreNoNesting) {
  EXPECT_TRUE(ParseJson("\"" + std::string(5'000, '[') + "\\\"[[[\"").ok());
}

TEST(JsonTest, OfEqualKeysTheLastCountsInTheFirstOnesPlace) {
  auto json = ParseJson(R"({"a":1,"b":{"x":1,"x":2},"a":[3],"c":4,"b":5})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(DumpJson(*json), R"({"a":[3],"b":5,"c":4})");
  EXPECT_EQ(DumpJson(*ParseJson(R"({"b":{"x":1,"y":0,"x":2}})")), R"({"b":{"x":2,"y":0}})");
}

std::string ObjectOf(size_t members) {
  std::string text = "{";
  for (size_t i = 0; i < members; ++i) text += fmt::format("{}\"{}\":1", i > 0 ? "," : "", i);
  return text + "}";
}

TEST(JsonTest, RefusesObjectsWithTooManyMembers) {
  EXPECT_TRUE(ParseJson(ObjectOf(1024)).ok());
  const Status status = ParseJson(ObjectOf(1025)).status();
  EXPECT_NE(status.message().find("1024 members (--max-members)"), std::string::npos) << status.message();
  EXPECT_TRUE(ParseJson(ObjectOf(1025), {.members = 1025}).ok());
  std::string nested = "[" + ObjectOf(900);
  for (int i = 0; i < 10; ++i) nested += "," + ObjectOf(900);
  EXPECT_TRUE(ParseJson(nested + "]").ok()) << "the limit is for each object";
  EXPECT_FALSE(ParseJson("[{\"a\":" + ObjectOf(1025) + "}]").ok());
}

TEST(JsonTest, RefusesTooManyValues) {
  EXPECT_TRUE(ParseJson("[1,2,3]", {.values = 4}).ok());
  EXPECT_FALSE(ParseJson("[1,2,3,4]", {.values = 4}).ok());
  EXPECT_TRUE(ParseJson("[[],{}]", {.values = 3}).ok());
  EXPECT_TRUE(ParseJson(R"({"a":1})", {.values = 2 + kValuesPerMember}).ok());
  const Status status = ParseJson(R"({"a":1})", {.values = 1 + kValuesPerMember}).status();
  EXPECT_NE(status.message().find("--max-values"), std::string::npos) << status.message();
}

TEST(JsonTest, StopsWhenNobodyWaits) {
  const std::string text = "[\"" + std::string(200'000, '1') + "\"]";  // one value, which is not worth asking
  int asked = 0;
  const auto count = [&] { return ++asked < 3; };
  EXPECT_TRUE(ParseJson(text, {}, count).ok());
  EXPECT_EQ(asked, 0);
  std::string list = "[0";
  for (int i = 0; i < 200'000; ++i) list += ",0";
  EXPECT_EQ(ParseJson(list + "]", {}, count).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(asked, 3);
}

TEST(JsonTest, DumpingNeverThrows) {
  EXPECT_EQ(DumpJson(Json("a\xFF")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace outrider
