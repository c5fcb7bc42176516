#include "apps/flags.h"

#include <gtest/gtest.h>

#include "apps/serve_flags.h"

namespace outrider {
namespace {

struct Parsed {
  ServeOptions options;
  CLI::App app;
  Flags flags{app};

  explicit Parsed(const std::vector<const char*>& arguments) {
    AddServeFlags(flags, options);
    std::vector<std::string> translated = flags.Translate(static_cast<int>(arguments.size()), arguments.data());
    app.parse(std::vector<std::string>(translated.rbegin(), translated.rend()));
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

TEST(EditDistanceTest, CountsChanges) {
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("same", "same"), 0);
}

}  // namespace
}  // namespace outrider
