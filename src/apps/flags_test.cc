#include "apps/flags.h"

#include <gtest/gtest.h>

#include <map>

#include "apps/bench_flags.h"
#include "apps/serve_flags.h"
#include "apps/speculation.h"
#include "base/file.h"

namespace outrider {
namespace {

struct Parsed {
  ServeOptions options;
  CLI::App app;
  Flags flags{app};

  Status status;

  explicit Parsed(const std::vector<const char*>& arguments, const std::map<std::string, std::string>& variables = {}) {
    AddServeFlags(flags, options);
    const auto environment = [&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    status = flags.Parse(static_cast<int>(arguments.size()), arguments.data(), environment);
  }
};

// What is said about arguments that are refused; "" if they are not.
std::string Refusal(const std::vector<const char*>& arguments,
                    const std::map<std::string, std::string>& variables = {}) {
  return Parsed(arguments, variables).status.message();
}

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
  EXPECT_NE(Refusal({"--temp", "hot"}), "");
  EXPECT_NE(Refusal({"--top-p", "1.5"}), "");
  EXPECT_NE(Refusal({"-fa", "perhaps"}), "");
  EXPECT_NE(Refusal({"--port", "99999"}), "");
  EXPECT_NE(Refusal({"-np", "0"}), "");
  EXPECT_EQ(Refusal({"--nonsense"}), "'--nonsense' is not a flag;  --help lists them");
  EXPECT_EQ(Refusal({"model.gguf"}), "'model.gguf' is not a flag, and no flag before it takes it as its value");
  EXPECT_EQ(Refusal({"--port"}), "--port needs a value");
}

TEST(ServeFlagsTest, TheNearestFlagIsSuggested) {
  const Parsed parsed({});
  EXPECT_EQ(parsed.flags.Nearest("--temprature"), "--temperature");
  EXPECT_EQ(parsed.flags.Nearest("--ctx-sise"), "--ctx-size");
  EXPECT_EQ(parsed.flags.Nearest("--flash"), "--flash-attn");
  EXPECT_EQ(parsed.flags.Nearest("--gpu-layer=3"), "--gpu-layers");
  EXPECT_EQ(parsed.flags.Nearest("--zzzzzzzzzz"), "");
  EXPECT_EQ(parsed.flags.Nearest("--curt"), "") << "--port is not near";
  EXPECT_EQ(parsed.flags.Nearest("--no"), "") << "too short to say";
  EXPECT_EQ(parsed.flags.Nearest("-xyz"), "");
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

TEST(ServeFlagsTest, AFlagIsNeverReadAsALetterWithAValue) {
  EXPECT_EQ(Parsed({"-ncmoe", "3"}).options.model.n_cpu_moe, 3);
  EXPECT_EQ(Parsed({"-ncmoe", "3"}).options.max_tokens, -1);
  EXPECT_TRUE(Parsed({"-sps", "0.5"}).status.ok());
  EXPECT_EQ(Parsed({"-sps", "0.5"}).options.seed, -1);
  EXPECT_EQ(Parsed({"-hf", "user/model"}).options.download.repo, "user/model");
  EXPECT_FALSE(Parsed({"-hf", "user/model"}).flags.help_wanted());
  EXPECT_EQ(Parsed({"-cram", "100"}).options.cache_mib, 100);
  EXPECT_EQ(Parsed({"-mm", "x.gguf"}).options.media.path, "x.gguf");
  EXPECT_TRUE(Refusal({"-ag"}).starts_with("-ag is refused: "));
  EXPECT_TRUE(Refusal({"-c4096"}).starts_with("'-c4096' is not a flag"));
}

TEST(ServeFlagsTest, FlagsThatChangeNothingAreNoted) {
  const Parsed parsed({"--jinja", "-c", "64", "-sps", "0.5", "--cache-reuse", "0", "--no-warmup", "--metrics"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.options.context.context_tokens, 64);
  ASSERT_EQ(parsed.flags.notes().size(), 5u);
  EXPECT_EQ(parsed.flags.notes()[0], "--jinja changes nothing: templates are always Jinja");
  EXPECT_EQ(parsed.flags.notes()[2], "--cache-reuse 0 changes nothing");
  EXPECT_TRUE(Refusal({"--cache-reuse", "2"}).starts_with("--cache-reuse is refused: "));
  EXPECT_TRUE(
      Refusal({"--control-vector-layer-range", "1", "2"}).starts_with("--control-vector-layer-range is refused"));
  EXPECT_EQ(Refusal({"--keep"}), "--keep needs a value");
}

TEST(ServeFlagsTest, WhatComesLaterWins) {
  EXPECT_EQ(Parsed({"-c", "1", "-c", "2"}).options.context.context_tokens, 2);
  EXPECT_FALSE(Parsed({"--mmap", "--no-mmap"}).options.model.mmap);
  EXPECT_TRUE(Parsed({"--no-mmap", "--mmap"}).options.model.mmap);
  EXPECT_FALSE(Parsed({"-kvo", "-nkvo"}).options.context.kv_offload);
  EXPECT_EQ(Parsed({"--ctx_size", "5"}).options.context.context_tokens, 5) << "as llama.cpp reads it";
}

TEST(ServeFlagsTest, SomeValuesAreTheDefault) {
  EXPECT_EQ(Parsed({"-ngl", "all"}).options.model.gpu_layers, -1);
  EXPECT_EQ(Parsed({"-t", "-1"}).options.context.threads, 0);
  EXPECT_EQ(Parsed({"-np", "-1"}).options.context.n_sequences, ContextOptions::kAuto);
  EXPECT_EQ(Parsed({"--seed", "4294967295"}).options.seed, -1);
  EXPECT_EQ(Parsed({"--threads-http", "-1"}).options.http.max_connections, HttpOptions().max_connections);
  EXPECT_EQ(Parsed({"-fa"}).options.context.flash_attention, FlashAttention::kOn);
  EXPECT_EQ(Parsed({"-fa", "-c", "9"}).options.context.context_tokens, 9);
  EXPECT_EQ(Parsed({"-fa", "0"}).options.context.flash_attention, FlashAttention::kOff);
}

TEST(ServeFlagsTest, VariablesAreReadWhereNoFlagIsGiven) {
  const std::map<std::string, std::string> variables = {
      {"LLAMA_ARG_CTX_SIZE", "512"},   {"LLAMA_ARG_MODEL", "m.gguf"},   {"LLAMA_ARG_KV_OFFLOAD", "0"},
      {"LLAMA_ARG_NO_REPACK", "1"},    {"LLAMA_ARG_CPU_MOE", "true"},   {"LLAMA_API_KEY", "a,b"},
      {"LLAMA_ARG_JINJA", "on"},       {"LLAMA_ARG_EMBEDDINGS", "off"}, {"LLAMA_ARG_PORT", ""},
      {"LLAMA_ARG_CONTEXT_SHIFT", "0"}};
  const Parsed parsed({"-c", "1024"}, variables);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.options.context.context_tokens, 1024) << "the flag wins";
  EXPECT_EQ(parsed.options.model.path, "m.gguf");
  EXPECT_FALSE(parsed.options.context.kv_offload);
  EXPECT_FALSE(parsed.options.model.repack);
  EXPECT_TRUE(parsed.options.model.cpu_moe);
  EXPECT_FALSE(parsed.options.embeddings);
  EXPECT_EQ(parsed.options.api_keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Parsed({"--api-key", "c"}, variables).options.api_keys, std::vector<std::string>{"c"});
  EXPECT_TRUE(Parsed({"--repack"}, variables).options.model.repack);
  EXPECT_EQ(parsed.flags.notes().size(), 2u) << "--jinja and --no-context-shift";

  EXPECT_NE(Refusal({}, {{"LLAMA_ARG_PORT", "many"}}).find("LLAMA_ARG_PORT"), std::string::npos);
  EXPECT_TRUE(
      Refusal({}, {{"LLAMA_ARG_KV_UNIFIED_PER_SLOT", "x"}}).starts_with("LLAMA_ARG_KV_UNIFIED_PER_SLOT is refused: "));
  EXPECT_EQ(Refusal({}, {{"LLAMA_ARG_CPU_MOE", "perhaps"}}), "LLAMA_ARG_CPU_MOE=perhaps: it must be on or off");
}

TEST(ServeFlagsTest, AFlagOfADrafterIsAParameterOfIt) {
  const Parsed parsed({"--spec-type", "ngram-mod,ngram-simple:size_n=5", "--spec-ngram-mod-n-match", "20",
                       "--spec-ngram-simple-size-n", "7", "--spec-ngram-map-k-size-m", "9"});
  const auto choices = ChooseDrafters(parsed.options.speculation);
  ASSERT_TRUE(choices.ok());
  ASSERT_EQ(choices->size(), 2u);
  EXPECT_EQ((*choices)[0].parameters.at("n_match"), "20");
  EXPECT_EQ((*choices)[1].parameters.at("size_n"), "5") << "what --spec says itself goes before";
}

TEST(ServeFlagsTest, EveryAliasSetsTheSameField) {
  for (const char* name : {"-ngl", "--gpu-layers", "--n-gpu-layers"}) {
    EXPECT_EQ(Parsed({name, "3"}).options.model.gpu_layers, 3) << name;
  }
  for (const char* name : {"--draft-max", "--spec-draft-n-max", "--draft-n"}) {
    EXPECT_EQ(Parsed({name, "9"}).options.speculation.speculator.n_max, 9) << name;
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
  EXPECT_NE(Refusal({"--config", path.c_str()}), "") << "a key that is not a flag";
  ASSERT_TRUE(KeepFile(path, "parallel = 0\n").ok());
  EXPECT_NE(Refusal({"--config", path.c_str()}), "") << "values are checked as on the command line";
  EXPECT_NE(Refusal({"--config", "/nowhere"}), "");
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
  EXPECT_NE(page.find("| `--port` | port to listen on; 0 = any free one | 8080 | `LLAMA_ARG_PORT` |\n"),
            std::string::npos);
}

TEST(BenchFlagsTest, NumbersAreListsAndAreChecked) {
  BenchOptions options;
  CLI::App app;
  Flags flags(app);
  AddBenchFlags(flags, options);
  const auto parse = [&](std::vector<const char*> arguments) {
    return flags.Parse(static_cast<int>(arguments.size()), arguments.data(), [](const char*) { return nullptr; }).ok();
  };
  EXPECT_TRUE(parse({"-m", "m.gguf", "-md", "d.gguf", "--temp", "0,0.8", "--concurrency", "1,4", "--context", "0,2k",
                     "-n", "64", "--variant", "a=--spec suffix,model", "--variant", "b=--spec none"}));
  EXPECT_EQ(options.draft, "d.gguf");
  EXPECT_EQ(options.temperatures, (std::vector<double>{0, 0.8}));
  EXPECT_EQ(options.concurrency, (std::vector<int>{1, 4}));
  EXPECT_EQ(options.contexts, (std::vector<std::string>{"0", "2k"}));
  EXPECT_EQ(options.tokens, 64);
  EXPECT_EQ(options.variants, (std::vector<std::string>{"a=--spec suffix,model", "b=--spec none"}));
  EXPECT_FALSE(parse({"--concurrency", "0"}));
  EXPECT_FALSE(parse({"--temp", "-1"}));
  EXPECT_FALSE(parse({"--runs", "0"}));
}

TEST(EditDistanceTest, CountsChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

}  // namespace
}  // namespace outrider
