#include "api/fields.h"

#include <gtest/gtest.h>

#include <limits>

namespace outrider {
namespace {

TEST(FieldReaderTest, AbsentAndNullLeaveTheDefault) {
  const Json body = {{"a", nullptr}};
  FieldReader fields(body);
  bool flag = true;
  int number = 7;
  float real = 0.5f;
  std::string text = "x";
  uint64_t seed = 3;
  std::vector<std::string> list = {"y"};
  for (const char* name : {"a", "b"}) {
    EXPECT_FALSE(fields.Has(name));
    fields.Bool(name, &flag);
    fields.Int(name, 0, 1, &number);
    fields.Float(name, 0, 0.1, &real);
    fields.String(name, &text);
    fields.Seed(name, &seed);
    fields.StringOrList(name, 1, &list);
  }
  EXPECT_TRUE(fields.status().ok());
  EXPECT_TRUE(flag && number == 7 && real == 0.5f && text == "x" && seed == 3 && list.size() == 1);
}

TEST(FieldReaderTest, ErrorsNameFieldAndRangeAndTheFirstOneStays) {
  const Json body = {{"t", 3}, {"n", 1.5}};
  FieldReader fields(body, "outer.");
  float real = 0;
  int number = 0;
  fields.Float("t", 0, 2, &real);
  fields.Int("n", 1, 5, &number);
  EXPECT_EQ(fields.status().message(), "must be a number between 0 and 2");
  EXPECT_EQ(fields.status().field(), "outer.t");
}

TEST(FieldReaderTest, WholeNumbersMayBeWrittenAsReals) {
  const Json body = Json::parse(R"({"a": 10.0, "b": 1e30, "c": 18446744073709551615, "d": true})");
  FieldReader good(body);
  int number = 0;
  good.Int("a", 0, 20, &number);
  EXPECT_TRUE(good.status().ok());
  EXPECT_EQ(number, 10);
  for (const char* name : {"b", "c", "d"}) {
    FieldReader bad(body);
    bad.Int(name, 0, std::numeric_limits<int>::max(), &number);
    EXPECT_EQ(bad.status().field(), name);
  }
}

TEST(FieldReaderTest, BodiesThatAreNoObjects) {
  const Json list = Json::array();
  EXPECT_FALSE(FieldReader(list).status().ok());
  EXPECT_EQ(FieldReader(list, "text.").status().field(), "text");
}

}  // namespace
}  // namespace outrider
