#include "apps/adapter_flags.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(AdapterFlagsTest, FilesComeWithAndWithoutScales) {
  const auto named = NameAdapters({{"a.gguf", "b.gguf"}, {"c.gguf:0.5", "d:e.gguf:-1"}});
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->paths, (std::vector<std::string>{"a.gguf", "b.gguf", "c.gguf", "d:e.gguf"}));
  EXPECT_EQ(named->scales, (std::vector<float>{1, 1, 0.5f, -1}));
  EXPECT_EQ(NameAdapters({{"a.gguf"}, {"c.gguf:0.5"}, true})->scales, (std::vector<float>{0, 0}));
}

TEST(AdapterFlagsTest, AScaleMustBeANumber) {
  for (const char* text : {"a.gguf", "a.gguf:", "a.gguf:x", "a.gguf:1x", ":1", "a.gguf:nan", "a.gguf:inf", ""}) {
    EXPECT_EQ(NameAdapters({{}, {text}}).status().message(),
              std::string("--lora-scaled '") + text + "' is not FILE:SCALE, such as adapter.gguf:0.5");
  }
}

}  // namespace
}  // namespace outrider
