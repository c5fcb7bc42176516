#include <gtest/gtest.h>

#include "api/info.h"
#include "base/request_budget.h"
#include "engine/fake_tokenizer.h"

namespace outrider {
namespace {

struct TokenizeTest : testing::Test {
  FakeTokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat = std::move(*ChatTemplate::Create("", "", ""));
  ApiContext context{.tokenizer = tokenizer,
                     .chat = *chat,
                     .model_name = "tiny",
                     .start_time = 0,
                     .sequence_length = 512,
                     .n_slots = 1,
                     .sampling = {},
                     .max_tokens = -1};

  using Endpoint = Result<Json> (*)(const Json&, const ApiContext&);

  Json Ok(Endpoint endpoint, const char* body) {
    Result<Json> answer = endpoint(Json::parse(body), context);
    EXPECT_TRUE(answer.ok()) << answer.status().field() << ": " << answer.status().message();
    return answer.ok() ? *answer : Json();
  }
  std::string WrongField(Endpoint endpoint, const char* body) {
    const Result<Json> answer = endpoint(Json::parse(body), context);
    EXPECT_EQ(answer.status().code(), StatusCode::kInvalidArgument) << body;
    EXPECT_NE(answer.status().message(), "");
    return answer.status().field();
  }
};

TEST_F(TokenizeTest, Tokens) {
  EXPECT_EQ(Ok(TokenizeJson, R"({"content": "hi"})"), Json::parse(R"({"tokens": [104, 105]})"));
  EXPECT_EQ(Ok(TokenizeJson, R"({"content": "hi", "add_special": true})"),
            Json::parse(R"({"tokens": [256, 104, 105]})"));
  EXPECT_EQ(Ok(TokenizeJson, R"({"content": ""})"), Json::parse(R"({"tokens": []})"));
}

TEST_F(TokenizeTest, PiecesAreTextOrBytes) {
  EXPECT_EQ(Ok(TokenizeJson, R"({"content": "aé", "with_pieces": true, "add_special": true})"),
            Json::parse(R"({"tokens": [{"id": 256, "piece": "<bos>"}, {"id": 97, "piece": "a"},
                                       {"id": 195, "piece": [195]}, {"id": 169, "piece": [169]}]})"));
}

TEST_F(TokenizeTest, RefusesWrongFields) {
  EXPECT_EQ(WrongField(TokenizeJson, "[]"), "");
  EXPECT_EQ(WrongField(TokenizeJson, "{}"), "content");
  EXPECT_EQ(WrongField(TokenizeJson, R"({"content": 5})"), "content");
  EXPECT_EQ(WrongField(TokenizeJson, R"({"content": "a", "with_pieces": 1})"), "with_pieces");
  EXPECT_EQ(WrongField(TokenizeJson, R"({"content": "a", "parse_special": "no"})"), "parse_special");
}

TEST_F(TokenizeTest, Detokenizes) {
  EXPECT_EQ(Ok(DetokenizeJson, R"({"tokens": [104, 195, 169]})"), Json::parse(R"({"content": "hé"})"));
  EXPECT_EQ(Ok(DetokenizeJson, R"({"tokens": [257]})"), Json::parse(R"({"content": "<eos>"})"));
  EXPECT_EQ(Ok(DetokenizeJson, R"({"tokens": []})"), Json::parse(R"({"content": ""})"));
}

TEST_F(TokenizeTest, DetokenizeReplacesInvalidUtf8) {
  EXPECT_EQ(Ok(DetokenizeJson, R"({"tokens": [97, 195]})"), Json::parse(R"({"content": "a\ufffd"})"));
}

TEST_F(TokenizeTest, DetokenizeNamesTheWrongToken) {
  EXPECT_EQ(WrongField(DetokenizeJson, "{}"), "tokens");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": "abc"})"), "tokens");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [1, 258]})"), "tokens[1]");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [-1]})"), "tokens[0]");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [1, 2, 18446744073709551615]})"), "tokens[2]");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [4294967296]})"), "tokens[0]");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [1.5]})"), "tokens[0]");
  EXPECT_EQ(WrongField(DetokenizeJson, R"({"tokens": [[1]]})"), "tokens[0]");
}

TEST_F(TokenizeTest, AppliesTheTemplate) {
  const Json answer = Ok(ApplyTemplateJson, R"({"messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(answer["prompt"], "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  const Json without = Ok(ApplyTemplateJson, R"({"messages": [{"role": "user", "content": "Hi"}],
                                                 "add_generation_prompt": false})");
  EXPECT_EQ(without["prompt"], "<|im_start|>user\nHi<|im_end|>\n");
}

TEST_F(TokenizeTest, AppliesTheTemplateLikeAChatCompletion) {
  const std::string tools = R"("messages": [{"role": "user", "content": "Hi"}], "tools": [
      {"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}])";
  const auto prompt = [&](const std::string& choice) {
    return Ok(ApplyTemplateJson, ("{" + tools + R"(, "tool_choice": )" + choice + "}").c_str())["prompt"]
        .get<std::string>();
  };
  EXPECT_NE(prompt(R"("auto")").find("\"g\""), std::string::npos);
  const std::string named = prompt(R"({"type": "function", "function": {"name": "f"}})");
  EXPECT_NE(named.find("\"f\""), std::string::npos);
  EXPECT_EQ(named.find("\"g\""), std::string::npos) << "only the tool that must be called is shown";
  EXPECT_EQ(WrongField(ApplyTemplateJson, ("{" + tools + R"(, "tool_choice": "maybe"})").c_str()), "tool_choice");
}

TEST_F(TokenizeTest, TemplateErrorsNameTheField) {
  EXPECT_EQ(WrongField(ApplyTemplateJson, "{}"), "messages");
  EXPECT_EQ(WrongField(ApplyTemplateJson, R"({"messages": "Hi"})"), "messages");
  EXPECT_EQ(WrongField(ApplyTemplateJson, R"({"messages": [{"role": "user", "content": "Hi"}], "tools": {}})"),
            "tools");
  EXPECT_EQ(WrongField(ApplyTemplateJson, R"({"messages": [{"role": "user", "content": "Hi"}],
                                              "chat_template_kwargs": []})"),
            "chat_template_kwargs");
  EXPECT_EQ(WrongField(ApplyTemplateJson, R"({"messages": [{"role": "user", "content": 5}]})"), "messages[0].content");
}

TEST_F(TokenizeTest, AnswersAreBounded) {
  const auto tokens = [&](size_t bytes, bool with_pieces) {
    return TokenizeJson({{"content", std::string(bytes, 'x')}, {"with_pieces", with_pieces}}, context);
  };
  EXPECT_TRUE(tokens(kMaxListedPieces, true).ok());
  EXPECT_EQ(tokens(kMaxListedPieces + 1, true).status().field(), "content");
  EXPECT_TRUE(tokens(kMaxListedPieces + 1, false).ok());
  EXPECT_EQ(tokens(kMaxListedTokens + 1, false).status().field(), "content");

  EXPECT_EQ(tokens(kMaxTokenizedBytes + 1, false).status().field(), "content");

  const auto text = [&](size_t times) {
    return DetokenizeJson({{"tokens", std::vector<Token>(times, FakeTokenizer::kBos)}}, context);
  };
  const size_t most = kMaxDetokenizedBytes / 5;
  EXPECT_TRUE(text(most).ok());
  EXPECT_EQ(text(most + 1).status().field(), "tokens");
}

}  // namespace
}  // namespace outrider
