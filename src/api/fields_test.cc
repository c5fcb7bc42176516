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

TEST(FieldReaderTest, BoundsAreInclusive) {
  const Json body = {{"low", 1}, {"high", 5}, {"list", {"a", "b"}}};
  FieldReader fields(body);
  int number = 0;
  float real = 0;
  std::vector<std::string> list;
  fields.Int("low", 1, 5, &number);
  EXPECT_EQ(number, 1);
  fields.Int("high", 1, 5, &number);
  EXPECT_EQ(number, 5);
  fields.Float("low", 1, 5, &real);
  EXPECT_EQ(real, 1.0f);
  fields.Float("high", 1, 5, &real);
  EXPECT_EQ(real, 5.0f);
  fields.StringOrList("list", 2, &list);
  EXPECT_EQ(list, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(fields.status().ok());

  FieldReader too_long(body);
  std::vector<std::string> unchanged;
  too_long.StringOrList("list", 1, &unchanged);
  EXPECT_EQ(too_long.status().field(), "list");
  EXPECT_TRUE(unchanged.empty());

  const Json texts = {{"fits", std::string(1024, 'x')}, {"not", {std::string(1025, 'x')}}};
  FieldReader lengths(texts);
  lengths.StringOrList("fits", 1, &list);
  EXPECT_TRUE(lengths.status().ok());
  lengths.StringOrList("not", 1, &list);
  EXPECT_EQ(lengths.status().field(), "not");
}

TEST(FieldReaderTest, EachTypeInsists) {
  const Json body = {{"number", 5}, {"text", "x"}, {"list", Json::array()}, {"object", Json::object()}};
  const auto refused = [&](const char* name, auto read) {
    FieldReader fields(body);
    read(&fields, name);
    return fields.status().field() == name;
  };
  bool flag = false;
  std::string text;
  Json value;
  for (const char* name : {"number", "text", "list", "object"}) {
    const std::string type = name;
    EXPECT_TRUE(refused(name, [&](FieldReader* fields, const char* n) { fields->Bool(n, &flag); })) << name;
    EXPECT_EQ(refused(name, [&](FieldReader* fields, const char* n) { fields->String(n, &text); }), type != "text");
    EXPECT_EQ(refused(name, [&](FieldReader* fields, const char* n) { fields->Array(n, &value); }), type != "list");
    EXPECT_EQ(refused(name, [&](FieldReader* fields, const char* n) { fields->Object(n, &value); }), type != "object");
  }
}

TEST(FieldReaderTest, BodiesThatAreNoObjects) {
  const Json list = Json::array();
  EXPECT_FALSE(FieldReader(list).status().ok());
  EXPECT_EQ(FieldReader(list, "text.").status().field(), "text");
}

}  // namespace
}  // namespace outrider
