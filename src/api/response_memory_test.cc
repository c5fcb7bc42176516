#include "api/response_memory.h"

#include <gtest/gtest.h>

#include "api/parts_test_util.h"

namespace outrider {
namespace {

struct RememberingApi : ToyApi {
  explicit RememberingApi(uint64_t bytes = 1 << 20) : memory(bytes) { context.responses = &memory; }

  // The id of an answer that says `text`.
  std::string Answer(const Json& body, const std::string& text, const std::string& owner = "") {
    Result<ParsedRequest> request = ParseResponse(body, owner, context);
    EXPECT_TRUE(request.ok()) << request.status().message();
    for (const Chunk& chunk : MakeChunks(text, 1, FinishReason::kEndOfText)) request->writer->Append(chunk);
    return request->writer->Whole()["id"];
  }

  Status Refusal(const Json& body, const std::string& owner = "") const {
    return ParseResponse(body, owner, context).status();
  }

  ResponseMemory memory;
};

Json Continue(const std::string& id, const Json& input = "and then?") {
  return {{"input", input}, {"previous_response_id", id}};
}

TEST(ResponseMemoryTest, ARequestGoesOnFromAnEarlierResponse) {
  RememberingApi api;
  const std::string first = api.Answer({{"instructions", "Be brief."}, {"input", "weather?"}},
                                       "<think>hmm</think>Look:<call weather>{\"city\": \"Oslo\"}</call>");
  const Json output = Json::parse(R"([{"type": "function_call_output", "call_id": "id0", "output": "rain"}])");
  Json body = Continue(first, output);
  body["instructions"] = "Be kind.";
  const std::string second = api.Answer(body, "Take an umbrella.");
  EXPECT_EQ(api.chat.given.messages, Json::parse(R"([
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "weather?"},
    {"role": "assistant", "content": "Look:", "reasoning_content": "hmm", "tool_calls": [
      {"id": "id0", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}]},
    {"role": "tool", "tool_call_id": "id0", "content": "rain"}])"));
  api.Answer(Continue(second), "Go out.");
  EXPECT_EQ(api.chat.given.messages.size(), 5u);
  EXPECT_EQ(api.chat.given.messages[0]["role"], "user") << "instructions hold for one response";
  EXPECT_EQ(api.chat.given.messages[3]["content"], "Take an umbrella.");
  api.Answer(Continue(first, output), "Another branch.");
  EXPECT_EQ(api.chat.given.messages.size(), 3u);
}

TEST(ResponseMemoryTest, TheAnswerSaysWhatIsRemembered) {
  RememberingApi api;
  const std::string first = api.Answer({{"input", "a"}}, "b");
  Json body = Continue(first);
  body["store"] = false;
  const std::string second = api.Answer(body, "c");
  EXPECT_EQ(api.memory.Find("", first, "")->response["store"], true);
  EXPECT_EQ(api.memory.Find("", first, "")->response["previous_response_id"], nullptr);
  EXPECT_EQ(api.memory.Find("", first, "")->response["output"][0]["content"][0]["text"], "b");
  EXPECT_EQ(api.memory.Find("", second, "").status().code(), StatusCode::kNotFound);
}

TEST(ResponseMemoryTest, OthersDoNotSeeIt) {
  RememberingApi api;
  const std::string id = api.Answer({{"input", "a"}}, "b", "ann");
  EXPECT_TRUE(api.Refusal(Continue(id), "ann").ok());
  for (const Status& status : {api.Refusal(Continue(id), "bob"), api.Refusal(Continue("resp_x"), "ann")}) {
    EXPECT_EQ(status.code(), StatusCode::kNotFound);
    EXPECT_EQ(status.field(), "previous_response_id");
  }
  EXPECT_EQ(api.memory.Forget("bob", id).code(), StatusCode::kNotFound);
  EXPECT_TRUE(api.memory.Forget("ann", id).ok());
  EXPECT_EQ(api.Refusal(Continue(id), "ann").code(), StatusCode::kNotFound);
}

TEST(ResponseMemoryTest, OldResponsesAreForgottenForNewOnes) {
  RememberingApi api(4000);
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(api.Answer({{"input", "a"}}, "b"));
  EXPECT_FALSE(api.Refusal(Continue(ids.front())).ok());
  EXPECT_TRUE(api.Refusal(Continue(ids.back())).ok());
}

TEST(ResponseMemoryTest, WithoutAMemoryTheErrorSaysHowToGetOne) {
  const ToyApi api;
  const Status status = ParseResponse(Continue("resp_1"), "", api.context).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("--response-memory"), std::string::npos);
}

}  // namespace
}  // namespace outrider
