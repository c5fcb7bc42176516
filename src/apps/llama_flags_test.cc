// The table against llama.cpp's own source: what a llama-server accepts must be in the table, and what the table calls
// supported must be a flag of ours.
#include "apps/llama_flags.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "apps/serve_flags.h"
#include "base/file.h"

namespace outrider {
namespace {

// One add_opt of llama.cpp's common/arg.cpp.
struct Option {
  std::vector<std::string> names, off_names;
  std::string variable;
  bool server = true;
};

std::vector<std::string> QuotedStrings(const std::string& text) {
  static const std::regex quoted("\"([^\"]*)\"");
  std::vector<std::string> strings;
  for (std::sregex_iterator i(text.begin(), text.end(), quoted), end; i != end; ++i) strings.push_back((*i)[1]);
  return strings;
}

// The text between `begin` and the next brace that closes; "" if `begin` is not there.
std::string ListAfter(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  return at == text.npos ? "" : text.substr(at + begin.size(), text.find('}', at) - at - begin.size());
}

std::vector<Option> ReadOptions(const std::string& source) {
  const std::string add = "add_opt(common_arg(";
  std::vector<Option> options;
  for (size_t at = source.find(add); at != source.npos;) {
    const size_t next = source.find(add, at + 1);
    std::string block = source.substr(at + add.size(), next == source.npos ? next : next - at - add.size());
    block = std::regex_replace(block, std::regex("(^|\n)\\s*//[^\n]*"), "");
    at = next;
    Option option;
    const size_t open = block.find('{'), close = block.find('}');
    option.names = QuotedStrings(block.substr(open, close - open));
    const size_t after = block.find_first_not_of(", \n", close + 1);
    if (block[after] == '{') option.off_names = QuotedStrings(block.substr(after, block.find('}', after) - after));
    if (const size_t variable = block.find("set_env(\""); variable != block.npos) {
      option.variable = QuotedStrings(block.substr(variable)).front();
    }
    const std::string examples = ListAfter(block, "set_examples({"), excluded = ListAfter(block, "set_excludes({");
    option.server = (examples.empty() || examples.find("LLAMA_EXAMPLE_SERVER") != examples.npos ||
                     examples.find("LLAMA_EXAMPLE_COMMON") != examples.npos) &&
                    excluded.find("LLAMA_EXAMPLE_SERVER") == excluded.npos &&
                    block.find("set_preset_only") == block.npos;
    if (option.server) options.push_back(std::move(option));
  }
  return options;
}

class LlamaFlagsTest : public testing::Test {
 protected:
  LlamaFlagsTest() {
    AddServeFlags(flags_, options_);
    const auto source = ReadFile(OUTRIDER_LLAMA_SOURCE "/common/arg.cpp");
    if (source) llama_ = ReadOptions(*source);
  }

  ServeOptions options_;
  CLI::App app_;
  Flags flags_{app_};
  std::vector<Option> llama_;
};

TEST_F(LlamaFlagsTest, TheSourceIsUnderstood) {
  std::set<std::string> names, variables;
  for (const Option& option : llama_) {
    names.insert(option.names.begin(), option.names.end());
    names.insert(option.off_names.begin(), option.off_names.end());
    variables.insert(option.variable);
  }
  EXPECT_GT(names.size(), 380u);
  EXPECT_GT(variables.size(), 140u);
  for (const char* name :
       {"-c", "--ctx-size", "-mmdev", "-no-ag", "--no-slots", "-fit", "-fa", "--gpt-oss-20b-default"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("--prompt")) << "not for the server";
  EXPECT_FALSE(names.contains("--interactive")) << "not for the server";
}

TEST_F(LlamaFlagsTest, EveryFlagAndVariableIsInTheTable) {
  for (const Option& option : llama_) {
    for (const bool off : {false, true}) {
      const auto& names = off ? option.off_names : option.names;
      std::string variable = option.variable;
      if (off && variable.starts_with("LLAMA_ARG_")) variable.insert(sizeof "LLAMA_ARG_" - 1, "NO_");
      for (const std::string& name : names) {
        const LlamaFlag* flag = FindLlamaFlag(LlamaFlags(), name);
        ASSERT_NE(flag, nullptr) << name << " of llama.cpp is not in the table";
        EXPECT_EQ(flag->variable, variable) << name;
      }
    }
  }
}

TEST_F(LlamaFlagsTest, WhatIsCalledSupportedIsAFlagAndTheOthersAreNot) {
  for (const LlamaFlag& flag : LlamaFlags()) {
    ForEachPart(flag.names, [&](std::string_view name) {
      if (name == "-h" || name == "--help" || name == "--usage") return;
      EXPECT_EQ(flags_.Has(std::string(name)), flag.kind == LlamaFlagKind::kSupported) << name;
    });
    EXPECT_EQ(flag.note.empty(), flag.kind == LlamaFlagKind::kSupported) << flag.names << ": a reason is needed";
  }
}

TEST_F(LlamaFlagsTest, NamesAreUnique) {
  std::set<std::string_view> names, variables;
  for (const LlamaFlag& flag : LlamaFlags()) {
    ForEachPart(flag.names, [&](std::string_view name) { EXPECT_TRUE(names.insert(name).second) << name; });
    if (flag.variable.empty()) continue;
    EXPECT_TRUE(variables.insert(flag.variable).second) << flag.variable;
  }
}

}  // namespace
}  // namespace outrider
