#include "api/info.h"

#include <gtest/gtest.h>

#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

struct InfoTest : testing::Test {
  FakeTokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat = std::move(*ChatTemplate::Create("", "<bos>", "<eos>"));
  ApiContext context{.tokenizer = tokenizer,
                     .chat = *chat,
                     .model_name = "tiny",
                     .start_time = 1700000000,
                     .sequence_length = 512,
                     .n_slots = 3,
                     .sampling = {},
                     .max_tokens = -1};
  ServerInfo info{.model_path = "/models/tiny.gguf",
                  .model_description = "llama 1M F32",
                  .model_bytes = 5000000000,
                  .model_parameters = 1000000,
                  .trained_context = 2048,
                  .embedding_size = 64,
                  .kernels = "ggml",
                  .rollback = "drop cells",
                  .exactness = "",
                  .exactness_rests_on = {"each row alone"},
                  .build = "outrider 0.1.0"};
};

TEST_F(InfoTest, ModelsAreAnOpenAiList) {
  const Json expected = Json::parse(R"(
    [{
      "id": "tiny", "object": "model", "created": 1700000000, "owned_by": "outrider",
      "meta": {"description": "llama 1M F32", "n_vocab": 258, "n_ctx_train": 2048, "n_ctx": 512, "n_embd": 64,
               "n_params": 1000000, "size": 5000000000}
    }])");
  const Json answer = ModelsJson(context, info);
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["data"], expected);
  EXPECT_EQ(answer["models"][0]["name"], "tiny") << "Ollama's shape, as llama.cpp has it";
  EXPECT_EQ(answer["models"][0]["capabilities"], Json({"completion"}));
}

TEST_F(InfoTest, PropsTellTheDefaults) {
  context.sampling.temperature = 0.5f;
  context.sampling.top_k = 7;
  context.max_tokens = 99;
  const Json props = PropsJson(context, info);
  const Json& settings = props["default_generation_settings"];
  EXPECT_EQ(settings["n_ctx"], 512);
  EXPECT_EQ(settings["params"]["temperature"], 0.5);
  EXPECT_EQ(settings["params"]["top_k"], 7);
  EXPECT_EQ(settings["params"]["n_predict"], 99);
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["model_alias"], "tiny");
  EXPECT_EQ(props["model_path"], "/models/tiny.gguf");
  EXPECT_EQ(props["chat_template"], chat->source());
  EXPECT_EQ(props["bos_token"], "<bos>");
  EXPECT_EQ(props["eos_token"], "<eos>");
  EXPECT_EQ(props["build_info"], "outrider 0.1.0");
  EXPECT_EQ(props["drafters"], Json::array());
  EXPECT_EQ(props["modalities"], Json::parse(R"({"vision": false, "video": false, "audio": false})"));
  EXPECT_TRUE(props["chat_template_caps"].contains("supports_tools"));
  EXPECT_EQ(props["is_sleeping"], false);
  context.drafters = {"suffix", "model"};
  EXPECT_EQ(PropsJson(context, info)["drafters"], Json({"suffix", "model"}));
}

TEST_F(InfoTest, PropsSayWhetherOutputsAreExact) {
  EXPECT_EQ(PropsJson(context, info)["exactness"],
            Json::parse(R"({"holds": true, "reason": "", "rests_on": ["each row alone"]})"));
  EXPECT_EQ(PropsJson(context, info)["kernels"], "ggml");
  EXPECT_EQ(PropsJson(context, info)["rollback"], "drop cells");
  info.exactness = "the cache is f16";
  info.exactness_rests_on = {};
  EXPECT_EQ(PropsJson(context, info)["exactness"],
            Json::parse(R"({"holds": false, "reason": "the cache is f16", "rests_on": []})"));
}

TEST_F(InfoTest, SlotsHaveLlamaCppShape) {
  SlotStatus busy{
      .id = 1, .busy = true, .tokens_in_memory = 30, .prompt_tokens = 20, .generated_tokens = 11, .tokens_left = 89};
  SlotStatus idle{.id = 2, .generated_tokens = 5, .tokens_left = -1};  // of the request before
  const Json expected = Json::parse(R"([
    {"id": 1, "n_ctx": 512, "is_processing": true, "n_prompt_tokens": 20, "tokens_in_memory": 30,
     "next_token": [{"has_next_token": true, "n_remain": 89, "n_decoded": 11}]},
    {"id": 2, "n_ctx": 512, "is_processing": false, "n_prompt_tokens": 0, "tokens_in_memory": 0,
     "next_token": [{"has_next_token": false, "n_remain": -1, "n_decoded": 0}]}
  ])");
  EXPECT_EQ(SlotsJson({busy, idle}, {}, context), expected);
  EXPECT_EQ(SlotsJson({}, {}, context), Json::array());
}

TEST_F(InfoTest, OfTheSlotsOfOthersOnlyWhetherTheyAreBusyIsTold) {
  const std::vector<SlotStatus> slots = {
      {.id = 0, .busy = true, .tokens_in_memory = 30, .prompt_tokens = 20, .tokens_left = 89, .owner = "anna"},
      {.id = 1, .tokens_in_memory = 30, .prompt_tokens = 20, .tokens_left = -1, .owner = "anna"},
      {.id = 2, .tokens_in_memory = 7, .prompt_tokens = 5, .tokens_left = -1, .owner = "bert"}};
  std::vector<SlotStatus> for_bert = slots;
  for_bert[0] = {.id = 0, .busy = true, .tokens_left = -1};
  for_bert[1] = {.id = 1, .tokens_left = -1};
  const Viewer admin = {.owner = "boss", .sees_all = true};
  EXPECT_EQ(SlotsJson(slots, {.owner = "bert"}, context), SlotsJson(for_bert, admin, context));
  EXPECT_NE(SlotsJson(slots, {.owner = "bert"}, context), SlotsJson(slots, admin, context));
  EXPECT_EQ(SlotsJson(slots, admin, context)[1]["tokens_in_memory"], 30);
  EXPECT_EQ(SlotsJson(slots, {}, context)[2]["n_prompt_tokens"], 0) << "without a key is not everybody";
}

}  // namespace
}  // namespace outrider
