#include "apps/flags.h"

#include <gtest/gtest.h>

#include "apps/bench_flags.h"
#include "apps/serve_flags.h"
#include "base/file.h"

namespace outrider {
namespace {

struct Parsed {
  ServeOptions options;
  CLI::App app;
  Flags flags{app};

  explicit Parsed(const std::vector<const char*>& arguments) {
    AddServeFlags(flags, options);
    flags.Parse(static_cast<int>(arguments.size()), arguments.data());
  }
};

TEST(ServeFlagsTest, ALlamaServerCommandLineIsUnderstood) {
  const Parsed parsed(
      {"-m",     "model.gguf", "-c",     "8192",    "-b",        "1024",     "-ub",         "256",       "-t",
       "4",      "-tb",        "8",      "-ngl",    "99",        "-dev",     "CUDA0,CUDA1", "-ot",       "exps=CPU",
       "-sm",    "row",        "-ts",    "3,1",     "-mg",       "1",        "-fa",         "on",        "-ctk",
       "q8_0",   "-ctv",       "q8_0",   "-np",     "2",         "--numa",   "distribute",  "--no-mmap", "--mlock",
       "--host", "127.0.0.1",  "--port", "8081",    "--api-key", "k",        "--temp",      "0.2",       "--seed",
       "7",      "-n",         "128",    "--jinja", "-cb",       "--metrics"});
  const ServeOptions& o = parsed.options;
  EXPECT_EQ(o.model.path, "model.gguf");
  EXPECT_EQ(o.context.context_tokens, 8192);
  EXPECT_EQ(o.context.micro_batch, 256);
  EXPECT_EQ(o.context.threads_batch, 8);
  EXPECT_EQ(o.model.gpu_layers, 99);
  EXPECT_EQ(o.model.devices, (std::vector<std::string>{"CUDA0", "CUDA1"}));
  EXPECT_EQ(o.model.tensor_overrides, (std::vector<std::string>{"exps=CPU"}));
  EXPECT_EQ(o.model.tensor_split, (std::vector<float>{3, 1}));
  EXPECT_EQ(o.context.flash_attention, FlashAttention::kOn);
  EXPECT_EQ(o.context.cache_type_v, "q8_0");
  EXPECT_EQ(o.context.n_sequences, 2);
  EXPECT_FALSE(o.model.mmap);
  EXPECT_TRUE(o.model.mlock);
  EXPECT_EQ(o.http.port, 8081);
  EXPECT_FLOAT_EQ(o.sampling.temperature, 0.2f);
  EXPECT_EQ(o.seed, 7);
  EXPECT_EQ(o.max_tokens, 128);
}

TEST(ServeFlagsTest, WrongValuesAreRefused) {
  EXPECT_THROW(Parsed({"--temp", "hot"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"--top-p", "1.5"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"-fa", "perhaps"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"--port", "99999"}), CLI::ParseError);
  EXPECT_THROW(Parsed({"--nonsense"}), CLI::ExtrasError);
}

TEST(ServeFlagsTest, TheNearestFlagIsSuggested) {
  const Parsed parsed({});
  EXPECT_EQ(parsed.flags.Nearest("--temprature"), "--temperature");
  EXPECT_EQ(parsed.flags.Nearest("--ctx-sise"), "--ctx-size");
  EXPECT_EQ(parsed.flags.Nearest("--flash"), "--flash-attn");
  EXPECT_EQ(parsed.flags.Nearest("--gpu-layer=3"), "--gpu-layers");
  EXPECT_EQ(parsed.flags.Nearest("--zzzzzzzzzz"), "");
}

TEST(ServeFlagsTest, ManyLetterShortFlagsAreNotSplitIntoLetters) {
  const Parsed parsed({"-ngl", "7", "-nkvo", "-ub", "64", "-nr"});
  EXPECT_EQ(parsed.options.model.gpu_layers, 7);
  EXPECT_FALSE(parsed.options.context.kv_offload);
  EXPECT_EQ(parsed.options.context.micro_batch, 64);
  EXPECT_FALSE(parsed.options.model.repack);
  const ServeOptions defaults = Parsed({}).options;
  EXPECT_EQ(defaults.model.gpu_layers, -1);
  EXPECT_TRUE(defaults.context.kv_offload);
  EXPECT_TRUE(defaults.model.repack);
}

TEST(ServeFlagsTest, EveryAliasSetsTheSameField) {
  for (const char* name : {"-ngl", "--gpu-layers", "--n-gpu-layers"}) {
    EXPECT_EQ(Parsed({name, "3"}).options.model.gpu_layers, 3) << name;
  }
  for (const char* name : {"--draft-max", "--spec-draft-n-max", "--draft-n"}) {
    EXPECT_EQ(Parsed({name, "9"}).options.speculation.policy.n_max, 9) << name;
  }
}

TEST(ServeFlagsTest, ListsAreRepeatedOrCommaSeparated) {
  EXPECT_EQ(Parsed({"--api-key", "a,b", "--api-key", "c"}).options.api_keys, (std::vector<std::string>{"a", "b", "c"}));
  // The parameters of a drafter have commas of their own.
  EXPECT_EQ(Parsed({"--spec", "suffix,ngram-mod:n_max=3,n_min=1", "--spec", "model"}).options.speculation.drafters,
            (std::vector<std::string>{"suffix,ngram-mod:n_max=3,n_min=1", "model"}));
}

TEST(ServeFlagsTest, AConfigFileHasTheLongNamesAndTheCommandLineWins) {
  const std::string path = testing::TempDir() + "/flags_test.toml";
  ASSERT_TRUE(KeepFile(path, "model = \"m.gguf\"\nctx-size = 1024\nparallel = 3\ntemp = 0.5\nno-mmap = true\n").ok());
  const Parsed parsed({"--config", path.c_str(), "-c", "2048"});
  EXPECT_EQ(parsed.options.model.path, "m.gguf");
  EXPECT_EQ(parsed.options.context.n_sequences, 3);
  EXPECT_FLOAT_EQ(parsed.options.sampling.temperature, 0.5f);
  EXPECT_FALSE(parsed.options.model.mmap);
  EXPECT_EQ(parsed.options.context.context_tokens, 2048);
  ASSERT_TRUE(KeepFile(path, "ctx-sise = 1024\n").ok());
  EXPECT_THROW(Parsed({"--config", path.c_str()}), CLI::ParseError) << "a key that is not a flag";
  ASSERT_TRUE(KeepFile(path, "parallel = -1\n").ok());
  EXPECT_THROW(Parsed({"--config", path.c_str()}), CLI::ParseError) << "values are checked as on the command line";
  EXPECT_THROW(Parsed({"--config", "/nowhere"}), CLI::ParseError);
}

TEST(ServeFlagsTest, HelpShowsEveryFlagOnceWithItsDefault) {
  const Parsed parsed({});
  const std::string help = parsed.flags.Help();
  EXPECT_NE(help.find("\nModel:\n"), std::string::npos);
  EXPECT_NE(help.find("  -c, --ctx-size VALUE"), std::string::npos);
  EXPECT_EQ(help.find("--ctx-size VALUE"), help.rfind("--ctx-size VALUE"));
  EXPECT_NE(help.find("  --mlock  "), std::string::npos) << "no value";
  EXPECT_EQ(help.find("--jinja"), std::string::npos) << "without effect, so not shown";
  const std::string page = parsed.flags.MarkdownHelp();
  EXPECT_NE(page.find("\n## Model\n"), std::string::npos);
  EXPECT_NE(page.find("| `--port` | port to listen on; 0 = any free one | 8080 |\n"), std::string::npos);
}

TEST(BenchFlagsTest, NumbersAreListsAndAreChecked) {
  BenchOptions options;
  CLI::App app;
  Flags flags(app);
  AddBenchFlags(flags, options);
  const auto parse = [&](std::vector<const char*> arguments) {
    flags.Parse(static_cast<int>(arguments.size()), arguments.data());
  };
  parse({"-m", "m.gguf", "-md", "d.gguf", "--temp", "0,0.8", "--concurrency", "1,4", "--context", "0,2k", "-n", "64",
         "--variant", "a=--spec suffix,model", "--variant", "b=--spec none"});
  EXPECT_EQ(options.draft, "d.gguf");
  EXPECT_EQ(options.temperatures, (std::vector<double>{0, 0.8}));
  EXPECT_EQ(options.concurrency, (std::vector<int>{1, 4}));
  EXPECT_EQ(options.contexts, (std::vector<std::string>{"0", "2k"}));
  EXPECT_EQ(options.tokens, 64);
  EXPECT_EQ(options.variants, (std::vector<std::string>{"a=--spec suffix,model", "b=--spec none"}));
  EXPECT_THROW(parse({"--concurrency", "0"}), CLI::ParseError);
  EXPECT_THROW(parse({"--temp", "-1"}), CLI::ParseError);
  EXPECT_THROW(parse({"--runs", "0"}), CLI::ParseError);
}

TEST(EditDistanceTest, CountsChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

}  // namespace
}  // namespace outrider
