#include "apps/states_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace outrider {
namespace {

// Reads the fields of a file one after the other.
class Bytes {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  T Next() {
    T value;
    EXPECT_LE(at_ + sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  double NextHalf() {
    const auto bits = Next<uint16_t>();
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
  }

  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

std::string Record(const StatesHead& head, const std::vector<float>& logits, const std::vector<float>& states) {
  std::string bytes(StatesRecordBytes(head), '\0');
  EncodeStatesRecord(head, 7, 3, logits, states, bytes);
  return bytes;
}

TEST(StatesFileTest, TheHeadSaysHowLongARecordIs) {
  const StatesHead head = {{2, 15}, 576, 64, 49152};
  Bytes bytes(EncodeStatesHead(head));
  for (const char letter : std::string("ORSTATE1")) EXPECT_EQ(bytes.Next<char>(), letter);
  for (const uint32_t number : {2u, 576u, 64u, 49152u, 2u, 15u}) EXPECT_EQ(bytes.Next<uint32_t>(), number);
  EXPECT_TRUE(bytes.AtEnd());
  EXPECT_EQ(StatesRecordBytes(head), 8u + 64 * 6 + 2 * 576 * 2);
}

TEST(StatesFileTest, ARecordHasTheLikeliestTokensAndTheStates) {
  const StatesHead head = {{0}, 3, 3, 5};
  Bytes bytes(Record(head, {0, 2, -1, 2, 1}, {0.5f, -3, 65504}));
  EXPECT_EQ(bytes.Next<int32_t>(), 7);
  EXPECT_EQ(bytes.Next<int32_t>(), 3);
  for (const int id : {1, 3, 4}) EXPECT_EQ(bytes.Next<int32_t>(), id) << "of equal ones the first comes first";
  const double all = std::log(std::exp(0) + 2 * std::exp(2) + std::exp(-1) + std::exp(1));
  for (const double logit : {2, 2, 1}) EXPECT_NEAR(bytes.NextHalf(), logit - all, 1e-3);
  for (const double state : {0.5, -3.0, 65504.0}) EXPECT_EQ(bytes.NextHalf(), state);
  EXPECT_TRUE(bytes.AtEnd());
}

TEST(StatesFileTest, NumbersAreRoundedToTheNearestThatFits) {
  const std::vector<std::pair<float, double>> cases = {{1e6f, 65504},
                                                       {-1e6f, -65504},
                                                       {65519.0f, 65504},
                                                       {0x1p-24f, 0x1p-24},
                                                       {0x1.8p-25f, 0x1p-24},
                                                       {0x1p-25f, 0},
                                                       {1 + 0x1p-11f, 1},
                                                       {1 + 0x1.8p-11f, 1 + 0x1p-10},
                                                       {1 + 0x3p-11f, 1 + 0x1p-9},
                                                       {0x1.ff8p-15f, 0x1.ff8p-15},
                                                       {0x1.fffp-15f, 0x1p-14},
                                                       {0, 0},
                                                       {std::nanf(""), 0}};
  for (const auto& [value, expected] : cases) {
    Bytes bytes(Record({{0}, 1, 1, 2}, {0, 1}, {value}));
    for (int i = 0; i < 3; ++i) bytes.Next<int32_t>();
    bytes.NextHalf();
    EXPECT_EQ(bytes.NextHalf(), expected) << value;
  }
}

TEST(StatesFileTest, WithoutLayersThereAreNoStates) {
  const StatesHead head = {{}, 576, 2, 3};
  Bytes bytes(Record(head, {1, 0, -100}, {}));
  for (const int number : {7, 3, 0, 1}) EXPECT_EQ(bytes.Next<int32_t>(), number);
  const double first = bytes.NextHalf(), second = bytes.NextHalf();
  EXPECT_NEAR(first - second, 1, 2e-3);
  EXPECT_TRUE(bytes.AtEnd());
}

TEST(StatesFileTest, LinesOfTokens) {
  const auto tokens = ParseTokenLine(R"({"kind": "x", "tokens": [0, 9], "own": 1})", 10);
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  EXPECT_EQ(*tokens, (std::vector<Token>{0, 9}));
  for (const char* bad :
       {"", "[1]", "{}", R"({"tokens": 1})", R"({"tokens": []})", R"({"tokens": [10]})", R"({"tokens": [-1]})",
        R"({"tokens": [1.5]})", R"({"tokens": ["1"]})", R"({"tokens": [18446744073709551615]})", R"({"tokens": [1)"}) {
    EXPECT_EQ(ParseTokenLine(bad, 10).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace outrider
