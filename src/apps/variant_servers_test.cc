#include "apps/variant_servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

namespace outrider {
namespace {

// The names in order, or the error.
std::string Names(const BenchOptions& options) {
  const auto servers = ListVariants(options);
  if (!servers.ok()) return servers.status().message();
  std::vector<std::string> names;
  for (const VariantServer& server : *servers) names.push_back(server.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Commands without the program, by name.
std::map<std::string, std::string> Commands(const BenchOptions& options) {
  std::map<std::string, std::string> commands;
  const auto servers = ListVariants(options);
  EXPECT_TRUE(servers.ok());
  for (const VariantServer& server : *servers) {
    EXPECT_FALSE(server.command.empty()) << server.name;
    commands[server.name] = fmt::format("{}", fmt::join(server.command.begin() + 1, server.command.end(), " "));
  }
  return commands;
}

TEST(VariantServersTest, AModelIsMeasuredWithAndWithoutDrafts) {
  BenchOptions options;
  options.model = "m.gguf";
  EXPECT_EQ(Names(options), "plain, auto");
  options.draft = "d.gguf";
  EXPECT_EQ(Names(options), "plain, auto, auto + draft");
  options.threads = 2;
  options.gpu_layers = 0;
  options.concurrency = {1, 4, 2};
  options.flags = "--ctx-size '4096'";
  auto commands = Commands(options);
  const std::string common = "serve -m m.gguf --spec-forget -t 2 -ngl 0 -np 4 --ctx-size 4096";
  EXPECT_EQ(commands["plain"], common + " --spec none");
  EXPECT_EQ(commands["auto"], common + " --spec auto");
  EXPECT_EQ(commands["auto + draft"], common + " -md d.gguf");

  options.drafters = {"suffix", "ngram-mod:n_max=8"};
  options.variants = {"wide=--spec auto --draft-max 32"};
  EXPECT_EQ(Names(options), "plain, speculative, wide");
  commands = Commands(options);
  EXPECT_EQ(commands["speculative"], common + " --spec suffix --spec ngram-mod:n_max=8 -md d.gguf");
  EXPECT_EQ(commands["wide"], common + " --spec auto --draft-max 32");
}

TEST(VariantServersTest, ALlamaServerGetsTheDraftModelUnlessItsFlagsChooseDrafts) {
  BenchOptions options;
  options.model = "m.gguf";
  options.against = {"llama=/bin/llama-server -fa on"};
  EXPECT_EQ(Names(options), "plain, auto, llama");
  options.draft = "d.gguf";
  options.against.push_back("ngram=/bin/llama-server --spec-type ngram-mod");
  options.against.push_back("other draft=/bin/llama-server -md other.gguf");
  EXPECT_EQ(Names(options), "plain, auto, auto + draft, llama, llama + draft, ngram, other draft");
  auto commands = Commands(options);
  EXPECT_EQ(commands["llama"], "-fa on -m m.gguf -np 1");
  EXPECT_EQ(commands["llama + draft"], "-fa on -m m.gguf -np 1 -md d.gguf --spec-type draft-simple");
  EXPECT_EQ(commands["ngram"], "--spec-type ngram-mod -m m.gguf -np 1");
  const auto servers = ListVariants(options);
  EXPECT_TRUE(servers->front().is_outrider);
  EXPECT_FALSE(servers->back().is_outrider);
}

TEST(VariantServersTest, ServersThatRunHaveAnAddress) {
  BenchOptions options;
  options.urls = {"http://a:1/v1", "ours=http://b:2"};
  const auto servers = ListVariants(options);
  ASSERT_TRUE(servers.ok());
  ASSERT_EQ(servers->size(), 2u);
  EXPECT_EQ((*servers)[0].name, "http://a:1/v1");
  EXPECT_EQ((*servers)[0].url, "http://a:1/v1");
  EXPECT_EQ((*servers)[1].name, "ours");
  EXPECT_EQ((*servers)[1].url, "http://b:2");
  EXPECT_TRUE((*servers)[1].command.empty());
}

TEST(VariantServersTest, SaysWhichFlagIsWrong) {
  BenchOptions options;
  EXPECT_EQ(Names(options), "there is nothing to measure: give -m FILE.gguf or --url http://host:port");
  options.against = {"x=y"};
  EXPECT_TRUE(Names(options).starts_with("which model?"));
  options.model = "m.gguf";
  options.variants = {"nameless"};
  EXPECT_EQ(Names(options), "--variant needs NAME=FLAGS, not 'nameless'");
  options.variants = {"a='open"};
  EXPECT_EQ(Names(options), "a quote is not closed in ''open'");
  options.variants = {"plain=--spec none"};
  EXPECT_EQ(Names(options), "two variants are called 'plain'");
  options.variants = {};
  for (const char* bad : {"llama-server", "llama-server="}) {
    options.against = {bad};
    EXPECT_TRUE(Names(options).starts_with("--against needs NAME=PROGRAM")) << bad;
  }
  options.against = {};
  options.flags = "\"";
  EXPECT_EQ(Names(options), "a quote is not closed in '\"'");
}

}  // namespace
}  // namespace outrider
