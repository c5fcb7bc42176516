#include "apps/request_defaults.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/file.h"

namespace outrider {
namespace {

using enum SamplingStage;

TEST(RequestDefaultsTest, SamplersAreNamesOrLetters) {
  ServeOptions options;
  EXPECT_EQ(MakeRequestDefaults(options)->sampling.stages, kDefaultSamplingStages);
  options.requests.samplers = "Top-K;temp;min_p";
  EXPECT_EQ(MakeRequestDefaults(options)->sampling.stages, (std::vector{kTopK, kTemperature, kMinP}));
  options.requests.sampler_letters = "kt";
  EXPECT_FALSE(MakeRequestDefaults(options).ok()) << "both";
  options.requests.samplers = "";
  EXPECT_EQ(MakeRequestDefaults(options)->sampling.stages, (std::vector{kTopK, kTemperature}));
  options.requests.sampler_letters = "ki";
  EXPECT_FALSE(MakeRequestDefaults(options).ok()) << "infill is not there";
}

TEST(RequestDefaultsTest, LogitBiasesHaveASign) {
  ServeOptions options;
  options.requests.logit_bias = {"15+1.5", "3-2", "7-inf"};
  const auto biases = MakeRequestDefaults(options)->sampling.logit_bias;
  EXPECT_EQ(biases, (std::vector<std::pair<Token, float>>{
                        {15, 1.5f}, {3, -2.0f}, {7, -std::numeric_limits<float>::infinity()}}));
  for (const char* wrong : {"15", "+1", "a+1", "1+", "1+x", "1*2", "-1+2", "1+nan"}) {
    options.requests.logit_bias = {wrong};
    EXPECT_FALSE(MakeRequestDefaults(options).ok()) << wrong;
  }
}

TEST(RequestDefaultsTest, EscapesAreRead) {
  EXPECT_EQ(ProcessEscapes(R"(a\nb\t\\\x41\q\)"), "a\nb\t\\A\\q\\");
  EXPECT_EQ(ProcessEscapes(R"(\x4)"), R"(\x4)");
  ServeOptions options;
  options.requests.stop = {R"(\n\n)"};
  options.requests.dry_breakers = {"none", R"(\t)"};
  EXPECT_EQ(MakeRequestDefaults(options)->stop, std::vector<std::string>{"\n\n"});
  EXPECT_EQ(MakeRequestDefaults(options)->sampling.dry_sequence_breakers, std::vector<std::string>{"\t"});
  options.requests.escapes = false;
  EXPECT_EQ(MakeRequestDefaults(options)->stop, std::vector<std::string>{R"(\n\n)"});
}

TEST(RequestDefaultsTest, AnswersFollowOneGrammar) {
  ServeOptions options;
  options.requests.json_schema = R"({"type": "object"})";
  EXPECT_NE(MakeRequestDefaults(options)->sampling.grammar.text.find("root"), std::string::npos);
  const std::string path = testing::TempDir() + "/request_defaults_test.gbnf";
  ASSERT_TRUE(KeepFile(path, "root ::= \"yes\"").ok());
  options.requests.grammar_file = path;
  EXPECT_FALSE(MakeRequestDefaults(options).ok()) << "two of them";
  options.requests.json_schema = "";
  EXPECT_EQ(MakeRequestDefaults(options)->sampling.grammar.text, "root ::= \"yes\"");
  options.requests.grammar_file = "/nowhere";
  EXPECT_FALSE(MakeRequestDefaults(options).ok());
  options.requests.grammar_file = "";
  options.requests.json_schema = "{";
  EXPECT_FALSE(MakeRequestDefaults(options).ok());
}

TEST(RequestDefaultsTest, TemplatesGetVariables) {
  ServeOptions options;
  options.chat.arguments = R"({"key": 1})";
  options.chat.reasoning = "off";
  options.chat.reasoning_effort = "low";
  options.chat.preserve_reasoning = false;
  EXPECT_EQ(MakeRequestDefaults(options)->template_arguments,
            Json({{"key", 1}, {"enable_thinking", false}, {"reasoning_effort", "low"}, {"preserve_reasoning", false}}));
  options.chat.reasoning = "perhaps";
  EXPECT_FALSE(MakeRequestDefaults(options).ok());
  options.chat.reasoning = "auto";
  options.chat.arguments = "[1]";
  EXPECT_FALSE(MakeRequestDefaults(options).ok());
}

}  // namespace
}  // namespace outrider
