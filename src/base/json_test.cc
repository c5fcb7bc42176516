#include "base/json.h"

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

TEST(JsonTest, DumpingNeverThrows) {
  EXPECT_EQ(DumpJson(Json("a\xFF")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace outrider
