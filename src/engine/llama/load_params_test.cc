#include "engine/llama/load_params.h"

#include <gtest/gtest.h>

#include "engine/llama/backend.h"

namespace outrider {
namespace {

TEST(LoadParamsTest, MetadataOverridesHaveATypeAndAValue) {
  EXPECT_EQ(ParseKvOverride("a.b=int:-7")->val_i64, -7);
  EXPECT_EQ(ParseKvOverride("a.b=float:1.5")->val_f64, 1.5);
  EXPECT_TRUE(ParseKvOverride("a=bool:true")->val_bool);
  EXPECT_STREQ(ParseKvOverride("a=str:x:y=z")->val_str, "x:y=z");
  EXPECT_STREQ(ParseKvOverride("a.b=int:1")->key, "a.b");
  for (const std::string& wrong :
       {std::string("a"), std::string("=int:1"), std::string("a=1"), std::string("a=int:"), std::string("a=int:1x"),
        std::string("a=float:nan"), std::string("a=bool:1"), std::string("a=text:x"), std::string(128, 'k') + "=int:1",
        "a=str:" + std::string(128, 'v')}) {
    EXPECT_FALSE(ParseKvOverride(wrong).ok()) << wrong;
  }
}

TEST(LoadParamsTest, OverridesOfTensorsComeInOrderAndEndWithNull) {
  ASSERT_TRUE(InitBackend().ok());
  ModelOptions options;
  options.tensor_overrides = {"a=CPU", "b=c=CPU"};
  options.cpu_moe = true;
  options.n_cpu_moe = 2;
  options.n_cpu_ffn = 1;
  LoadParams load;
  ASSERT_TRUE(FillLoadParams(options, load).ok());
  std::vector<std::string> patterns;
  for (const auto* each = load.params.tensor_buft_overrides; each->pattern != nullptr; ++each) {
    patterns.push_back(each->pattern);
    EXPECT_STREQ(ggml_backend_buft_name(each->buft), "CPU");
  }
  ASSERT_EQ(patterns.size(), 6u);
  EXPECT_EQ(patterns[0], "a");
  EXPECT_EQ(patterns[1], "b=c");
  EXPECT_EQ(patterns[2], R"(\.ffn_(up|down|gate|gate_up)_(ch|)exps)");
  EXPECT_EQ(patterns[4], R"(blk\.1\.ffn_(up|down|gate|gate_up)_(ch|)exps)");
  EXPECT_EQ(patterns[5], R"(blk\.0\.ffn_(up|down|gate)\.)");
}

TEST(LoadParamsTest, WrongChoicesAreNamed) {
  ASSERT_TRUE(InitBackend().ok());
  const auto refuses = [](auto change) {
    ModelOptions options;
    change(options);
    LoadParams load;
    return !FillLoadParams(options, load).ok();
  };
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.split_mode = "diagonal"; }));
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.load_mode = "slow"; }));
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.lazy_mode = "maybe"; }));
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.rope.scaling = "cubic"; }));
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.tensor_overrides = {"a=NOWHERE"}; }));
  EXPECT_TRUE(refuses([](ModelOptions& o) { o.tensor_overrides = {"a"}; }));
  EXPECT_FALSE(refuses([](ModelOptions& o) { o.load_mode = "mmap+mlock"; }));
}

}  // namespace
}  // namespace outrider
