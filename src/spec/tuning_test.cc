// docs/TUNING.md has a table with every number of the Tuning. It is written by hand from what bench/policy_sensitivity
// prints, so these tests compare it with the structs.
#include "spec/tuning.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>

namespace outrider {
namespace {

// Name and value of each number, the value as the table has it.
using Numbers = std::map<std::string, std::string>;

Numbers NumbersOfTheCode() {
  Numbers numbers;
  Tuning tuning;
  VisitAllNumbers(tuning, [&](const std::string& name, auto& number) {
    EXPECT_TRUE(numbers.emplace(name, fmt::format("{:g}", static_cast<double>(number))).second) << name << " twice";
  });
  return numbers;
}

Numbers NumbersOfThePage() {
  Numbers numbers;
  std::ifstream page(OUTRIDER_TUNING_PAGE);
  EXPECT_TRUE(page.good()) << OUTRIDER_TUNING_PAGE;
  // A row begins with a name such as `cost.step_noise`, and then has the value.
  static const std::regex kRow(R"(^\| `([a-z_.]+\.[a-z_.]+)` \| ([^ |]+) \|.*)");
  for (std::string line; std::getline(page, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, kRow)) continue;
    EXPECT_TRUE(numbers.emplace(row[1], row[2]).second) << row[1] << " twice";
  }
  return numbers;
}

TEST(TuningTest, ThePageHasTheNumbersOfTheCode) {
  const Numbers code = NumbersOfTheCode(), page = NumbersOfThePage();
  for (const auto& [name, value] : code) {
    const auto row = page.find(name);
    if (row == page.end()) {
      ADD_FAILURE() << name << " is missing in docs/TUNING.md";
    } else {
      EXPECT_EQ(row->second, value) << name << ": docs/TUNING.md against spec/tuning.h";
    }
  }
  for (const auto& [name, value] : page)
    EXPECT_TRUE(code.contains(name)) << name << " of docs/TUNING.md does not exist";
}

// Becomes whatever a field is, so that the fields of a struct can be counted: as many as it can be initialised from.
struct AnyField {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <typename Struct, typename... Fields>
constexpr int FieldCount() {
  if constexpr (requires { Struct{Fields{}..., AnyField{}}; }) {
    return FieldCount<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

// A field that is not visited would be missing in the table and in the sensitivity measurement.
TEST(TuningTest, EveryFieldIsVisited) {
  std::map<std::string, std::map<std::string, int>> visited;  // parts of a Tuning, their fields
  Tuning tuning;
  VisitAllNumbers(tuning, [&](const std::string& name, auto&) {
    const size_t dot = name.find('.');
    const std::string field = name.substr(dot + 1);
    ++visited[name.substr(0, dot)][field.substr(0, field.find('.'))];  // a Belief is one field with two numbers
  });
  const std::map<std::string, int> fields = {{"cost", FieldCount<CostTuning>()},
                                             {"acceptance", FieldCount<AcceptanceTuning>()},
                                             {"policy", FieldCount<PolicyTuning>()},
                                             {"pace", FieldCount<PaceTuning>()},
                                             {"asking", FieldCount<AskingTuning>()}};
  EXPECT_EQ(fields.size(), FieldCount<Tuning>());
  EXPECT_EQ(visited.size(), fields.size());
  for (const auto& [part, count] : fields) {
    EXPECT_EQ(visited[part].size(), count) << "VisitNumbers and VisitSharesNearOne leave out a field of " << part;
  }
}

}  // namespace
}  // namespace outrider
