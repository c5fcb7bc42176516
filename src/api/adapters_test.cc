#include "api/adapters.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(AdapterListTest, DescribesItselfAsLlamaServerDoes) {
  const AdapterList list({{"a.gguf", "poems", "", 1}, {"b.gguf", "", "Answer:", 2}}, {1, 0});
  EXPECT_EQ(list.Describe(), Json::parse(R"([
    {"id": 0, "path": "a.gguf", "scale": 1.0, "task_name": "poems", "prompt_prefix": ""},
    {"id": 1, "path": "b.gguf", "scale": 0.0, "task_name": "", "prompt_prefix": "Answer:"}])"));
  EXPECT_EQ(AdapterList().Describe(), Json::array());
}

TEST(AdapterListTest, RequestsThatDoNotSayGetTheDefaults) {
  AdapterList list({{"a", "", "", 1}, {"b", "", "", 2}}, {1, 0});
  EXPECT_EQ(*list.Read(nullptr), (AdapterSet{{0, 1}}));
  EXPECT_EQ(*list.Read(Json::array()), (AdapterSet{{0, 1}}));
  EXPECT_EQ(*list.SetDefaults(Json::parse(R"([{"id": 1, "scale": 0.5}])")), Json::parse(R"({"success": true})"));
  EXPECT_EQ(*list.Read(nullptr), (AdapterSet{{1, 0.5f}})) << "adapters that are not named are off";
  EXPECT_TRUE(list.SetDefaults(Json::array()).ok());
  EXPECT_EQ(list.Defaults(), AdapterSet());
}

TEST(AdapterListTest, ARequestNamesItsAdapters) {
  const AdapterList list({{"a", "", "", 1}, {"b", "", "", 2}}, {1, 1});
  EXPECT_EQ(*list.Read(Json::parse(R"([{"id": 1, "scale": -2}, {"id": 0, "scale": 0.25}])")),
            (AdapterSet{{0, 0.25f}, {1, -2}}));
  EXPECT_EQ(*list.Read(Json::parse(R"([{"id": 1, "scale": 0}])")), AdapterSet());
  EXPECT_EQ(*list.Read(Json::parse(R"([{"id": 1}])")), AdapterSet()) << "no scale is 0, as in llama-server";
}

TEST(AdapterListTest, NonsenseIsRefusedByName) {
  AdapterList list({{"a", "", "", 1}, {"b", "", "", 2}}, {1, 0});
  for (const char* body :
       {R"({"id": 0})", R"("x")", "[1]", R"([{"scale": 1}])", R"([{"id": 2}])", R"([{"id": -1}])", R"([{"id": "0"}])",
        R"([{"id": 0, "scale": "1"}])", R"([{"id": 0, "scale": 1e30}])", R"([{"id": 0}, {"id": 0}])"}) {
    const auto read = list.Read(Json::parse(body));
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << body;
    EXPECT_TRUE(read.status().field().starts_with("lora")) << body;
    EXPECT_FALSE(list.SetDefaults(Json::parse(body)).ok()) << body;
  }
  EXPECT_EQ(list.Defaults(), (AdapterSet{{0, 1}})) << "a wrong body changes nothing";
  EXPECT_EQ(AdapterList().Read(Json::parse(R"([{"id": 0, "scale": 1}])")).status().message(),
            "this server has no adapters; start it with --lora FILE");
}

}  // namespace
}  // namespace outrider
