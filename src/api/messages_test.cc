#include <gtest/gtest.h>

#include "api/input_tokens.h"
#include "api/parts_test_util.h"

namespace outrider {
namespace {

using Names = std::vector<std::string>;

const char* const kAnswer =
    "<think>hmm</think>Let me look.<call weather>{\"city\": \"Oslo\"}</call><call time>{}</call>";

Json Request(bool stream) {
  return {{"model", "toy"},
          {"max_tokens", 100},
          {"stream", stream},
          {"stop_sequences", {"STOP"}},
          {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
}

std::string Stream(const ToyApi& api, const std::string& text, size_t step, FinishReason reason) {
  Result<ParsedRequest> request = ParseMessages(Request(true), "", api.context);
  std::string stream;
  for (const Chunk& chunk : MakeChunks(text, step, reason)) stream += request->writer->Append(chunk);
  return stream;
}

Json Whole(const ToyApi& api, const std::string& text, FinishReason reason, const std::string& stop_string = "") {
  Result<ParsedRequest> request = ParseMessages(Request(false), "", api.context);
  for (const Chunk& chunk : MakeChunks(text, 1, reason, stop_string)) request->writer->Append(chunk);
  return request->writer->Whole();
}

// What the client's library builds from the events.
Json Accumulate(const std::string& stream) {
  Json message;
  std::vector<std::string> inputs;
  for (const auto& [name, data] : ParseEvents(stream)) {
    EXPECT_EQ(name, data["type"]);
    if (name == "message_start") message = data["message"];
    if (name == "content_block_start") {
      EXPECT_EQ(data["index"], message["content"].size());
      message["content"].push_back(data["content_block"]);
      inputs.emplace_back();
    }
    if (name == "content_block_delta") {
      const Json& delta = data["delta"];
      const size_t index = data["index"];
      Json& block = message["content"][index];
      if (delta["type"] == "text_delta")
        block["text"] = block["text"].get<std::string>() + delta["text"].get<std::string>();
      if (delta["type"] == "thinking_delta") {
        block["thinking"] = block["thinking"].get<std::string>() + delta["thinking"].get<std::string>();
      }
      if (delta["type"] == "input_json_delta") {
        inputs[index] += delta["partial_json"].get<std::string>();
        if (Json::accept(inputs[index])) block["input"] = Json::parse(inputs[index]);
      }
    }
    if (name == "message_delta") {
      message.update(data["delta"]);
      message["usage"].update(data["usage"]);
    }
  }
  return message;
}

TEST(Messages, WholeAnswer) {
  const ToyApi api;
  Json message = Whole(api, kAnswer, FinishReason::kEndOfText);
  EXPECT_TRUE(message["id"].get<std::string>().starts_with("msg_"));
  message.erase("id");
  EXPECT_EQ(message, Json::parse(R"({
    "type": "message", "role": "assistant", "model": "toy",
    "content": [{"type": "thinking", "thinking": "hmm", "signature": ""},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "id0", "name": "weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "id1", "name": "time", "input": {}}],
    "stop_reason": "tool_use", "stop_sequence": null,
    "usage": {"input_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5,
     "output_tokens": 100}})"));
}

TEST(Messages, StreamHasTheEventsInOrder) {
  const ToyApi api;
  EXPECT_EQ(EventNames(Stream(api, kAnswer, 1, FinishReason::kEndOfText)),
            (Names{"message_start", "ping",                                             //
                   "content_block_start", "content_block_delta", "content_block_stop",  //
                   "content_block_start", "content_block_delta", "content_block_stop",  //
                   "content_block_start", "content_block_delta", "content_block_stop",  //
                   "content_block_start", "content_block_delta", "content_block_stop",  //
                   "message_delta", "message_stop"}));
}

TEST(Messages, StreamAddsUpToTheWholeAnswer) {
  const ToyApi api;
  const Names texts = {
      kAnswer, "", "plain", "<call a>{\"cut\": \"of", "<think>only", "Ünï<call a>{}</call><call b>{\"c\": [1]}"};
  for (const std::string& text : texts) {
    for (const FinishReason reason : {FinishReason::kEndOfText, FinishReason::kLength, FinishReason::kTimeLimit}) {
      const Json whole = Whole(api, text, reason);
      for (const size_t step : {0, 1, 5}) {
        Json streamed = Accumulate(Stream(api, text, step, reason));
        streamed["id"] = whole["id"];
        EXPECT_EQ(streamed, whole) << text;
      }
    }
  }
}

TEST(Messages, TextAfterAToolCallIsABlockOfItsOwn) {
  const ToyApi api;
  const Json message = Accumulate(Stream(api, "a<call f>{}</call>b", 1, FinishReason::kEndOfText));
  ASSERT_EQ(message["content"].size(), 3u);
  EXPECT_EQ(message["content"][0]["text"], "a");
  EXPECT_EQ(message["content"][1]["name"], "f");
  EXPECT_EQ(message["content"][2]["text"], "b");
}

TEST(Messages, ErrorsAreEvents) {
  const ToyApi api;
  Result<ParsedRequest> request = ParseMessages(Request(true), "", api.context);
  const Json expected = {{"type", "error"}, {"error", {{"type", "api_error"}, {"message", "out of memory"}}}};
  auto events = ParseEvents(request->writer->ErrorEvent(Internal("out of memory")));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].first, "error");
  EXPECT_EQ(events[0].second, expected);

  Chunk last;
  last.completion =
      Completion{.reason = FinishReason::kError, .stop_string = "", .error = Internal("out of memory"), .timings = {}};
  events = ParseEvents(request->writer->Append(last));
  EXPECT_EQ(events.back().second, expected);
}

TEST(Messages, StopReasons) {
  const ToyApi api;
  EXPECT_EQ(Whole(api, "x", FinishReason::kEndOfText)["stop_reason"], "end_turn");
  EXPECT_EQ(Whole(api, "x", FinishReason::kLength)["stop_reason"], "max_tokens");
  EXPECT_EQ(Whole(api, "<call f>{", FinishReason::kLength)["stop_reason"], "max_tokens");
  const Json stopped = Whole(api, "x", FinishReason::kStopString, "STOP");
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "STOP");
  const Json by_template = Whole(api, "x", FinishReason::kStopString, "<end>");
  EXPECT_EQ(by_template["stop_reason"], "end_turn");
  EXPECT_EQ(by_template["stop_sequence"], nullptr);
}

TEST(Messages, ConversationBecomesChatMessages) {
  const ToyApi api;
  const Json body = Json::parse(R"({
    "max_tokens": 9, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "stop_sequences": ["a", "b"],
     "metadata": {"user_id": "u"},
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}, {"type": "text",
     "text": "Be kind."}],
    "messages": [
      {"role": "user", "content": "hi"},
      {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
      {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hmm", "signature": "s"},
        {"type": "text", "text": "Let me "}, {"type": "text", "text": "look."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {}}]},
      {"role": "user", "content": [
        {"type": "text", "text": "thanks"},
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "rain"}, {"type": "text",
         "text": "wind"}]},
        {"type": "tool_result", "tool_use_id": "t2", "is_error": true}]},
      {"role": "assistant", "content": "It rains"}],
    "tools": [{"name": "weather", "description": "d", "input_schema": {"type": "object"}},
              {"type": "custom", "name": "time", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}})");
  const Result<ParsedRequest> request = ParseMessages(body, "", api.context);
  ASSERT_TRUE(request.ok()) << request.status().field() << request.status().message();
  EXPECT_EQ(api.chat.given.messages, Json::parse(R"([
    {"role": "system", "content": "Be brief.\nBe kind."},
    {"role": "user", "content": "hi\nweather?"},
    {"role": "assistant", "content": "Let me look.", "reasoning_content": "hmm", "tool_calls": [
      {"id": "t1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
      {"id": "t2", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "t1", "content": "rain\nwind"},
    {"role": "tool", "tool_call_id": "t2", "content": ""},
    {"role": "user", "content": "thanks"},
    {"role": "assistant", "content": "It rains"}])"));
  EXPECT_EQ(ToolsJson(api.chat.given.tools), Json::parse(R"([
    {"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "time", "description": "", "parameters": {"type": "object"}}}])"));
  EXPECT_FALSE(api.chat.given.parallel_tool_calls);
  EXPECT_EQ(api.chat.given.tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(request->generation.max_tokens, 9);
  EXPECT_EQ(request->generation.sampling.temperature, 0.5f);
  EXPECT_EQ(request->generation.sampling.top_p, 0.25f);
  EXPECT_EQ(request->generation.sampling.top_k, 3);
  EXPECT_EQ(request->generation.stop, (Names{"a", "b", "<end>"}));
  EXPECT_FALSE(request->stream);
}

TEST(Messages, ToolChoice) {
  const ToyApi api;
  Json body = Request(false);
  body["tools"] = Json::parse(R"([{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}])");
  const auto choose = [&](const Json& choice) {
    body["tool_choice"] = choice;
    EXPECT_TRUE(ParseMessages(body, "", api.context).ok());
    return api.chat.given;
  };
  EXPECT_FALSE(choose(nullptr).parallel_tool_calls);
  EXPECT_TRUE(choose({{"type", "auto"}, {"disable_parallel_tool_use", false}}).parallel_tool_calls);
  EXPECT_EQ(choose({{"type", "none"}}).tool_choice, ToolChoice::kNone);
  EXPECT_EQ(choose({{"type", "any"}}).tool_choice, ToolChoice::kRequired);
  const ChatInput named = choose({{"type", "tool"}, {"name", "b"}});
  EXPECT_EQ(named.tool_choice, ToolChoice::kRequired);
  ASSERT_EQ(named.tools.size(), 1u);
  EXPECT_EQ(named.tools[0].name(), "b");
}

TEST(Messages, OutputSchema) {
  const ToyApi api;
  Json body = Request(false);
  const Json schema = {{"type", "object"}};
  body["output_config"] = {{"format", {{"type", "json_schema"}, {"schema", schema}}}};
  EXPECT_TRUE(ParseMessages(body, "", api.context).ok());
  ASSERT_TRUE(api.chat.given.json_schema);
  EXPECT_EQ(api.chat.given.json_schema->json(), schema);
}

TEST(Messages, ThinkingCanBeSwitchedOff) {
  const ToyApi api;
  Json body = Request(false);
  EXPECT_TRUE(ParseMessages(body, "", api.context).ok());
  EXPECT_EQ(api.chat.given.template_arguments, Json::object());
  body["thinking"] = {{"type", "disabled"}};
  EXPECT_TRUE(ParseMessages(body, "", api.context).ok());
  EXPECT_EQ(api.chat.given.template_arguments, Json({{"enable_thinking", false}}));
}

TEST(Messages, MistakesAreNamed) {
  const ToyApi api;
  struct Case {
    const char* patch;  // merged into a good request
    const char* field;
    const char* message;  // part of it
  };
  const Case cases[] = {
      {R"({"max_tokens": null})", "max_tokens", "required"},
      {R"({"max_tokens": "9"})", "max_tokens", "whole number"},
      {R"({"messages": null})", "messages", "at least one"},
      {R"({"messages": []})", "messages", "at least one"},
      {R"({"messages": {}})", "messages", "list"},
      {R"({"messages": [7]})", "messages[0]", "object"},
      {R"({"messages": [{"content": "hi"}]})", "messages[0].role", "\"user\""},
      {R"({"messages": [{"role": "tool", "content": "hi"}]})", "messages[0].role", "\"user\""},
      {R"({"messages": [{"role": 1, "content": "hi"}]})", "messages[0].role", "string"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content", "string or a list"},
      {R"({"messages": [{"role": "user", "content": [1]}]})", "messages[0].content[0]", "object"},
      {R"({"messages": [{"role": "user", "content": [{}]}]})", "messages[0].content[0].type", "required"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text", "string"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]})",
       "messages[0].content[0].source.type", "required"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file"}}]}]})",
       "messages[0].content[0].source.type", "keeps no files"},
      {R"({"messages": [{"role": "user", "content": [{"type": "document"}]}]})", "messages[0].content[0].type",
       "cannot be read"},
      {R"({"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]})", "messages[0].content[0].type",
       "cannot have"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_result"}]}]})", "messages[0].content[0].type",
       "cannot have"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}]})",
       "messages[0].content[0].id", "required"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "f",
       "input": "{}"}]}]})",
       "messages[0].content[0].input", "object"},
      {R"({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]})",
       "messages[0].content[0].tool_use_id", "required"},
      {R"({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i",
       "content": [{"type": "image"}]}]}]})",
       "messages[0].content[0].content[0].source", "object"},
      {R"({"system": 1})", "system", "string or a list"},
      {R"({"system": [{"type": "image"}]})", "system[0].type", "cannot be read"},
      {R"({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})", "tools[0].type", "web_search_20250305"},
      {R"({"tools": [{"name": "f"}]})", "tools[0].input_schema", "required"},
      {R"({"tools": [{"input_schema": {}}]})", "tools[0].name", "required"},
      {R"({"tools": [{"name": "f", "input_schema": {"type": "nonsense"}}]})", "tools[0].input_schema", ""},
      {R"({"tool_choice": "auto"})", "tool_choice", "object"},
      {R"({"tool_choice": {"type": "some"}})", "tool_choice.type", "\"any\""},
      {R"({"tool_choice": {"type": "any"}})", "tool_choice", "no tools"},
      {R"({"tool_choice": {"type": "tool", "name": "g"}})", "tool_choice.name", "not among"},
      {R"({"stop_sequences": [1]})", "stop_sequences", "strings"},
      {R"({"temperature": "hot"})", "temperature", "number"},
      {R"({"thinking": true})", "thinking", "object"},
      {R"({"stream": 1})", "stream", "true or false"},
      {R"({"metadata": "m"})", "metadata", "object"},
      {R"({"output_config": {"format": {"type": "json_schema"}}})", "output_config.format.schema", "required"},
      {R"({"output_config": {"format": {"type": "xml"}}})", "output_config.format.type", "json_schema"},
  };
  for (const Case& c : cases) {
    Json body = Request(false);
    body.merge_patch(Json::parse(c.patch));
    const Result<ParsedRequest> request = ParseMessages(body, "", api.context);
    ASSERT_FALSE(request.ok()) << c.patch;
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << c.patch;
    EXPECT_EQ(request.status().field(), c.field) << c.patch;
    EXPECT_NE(request.status().message().find(c.message), std::string::npos)
        << c.patch << ": " << request.status().message();
  }
}

TEST(Messages, TooLongIsBlamedOnTheMessages) {
  const ToyApi api;
  Json body = Request(false);
  body["messages"][0]["content"] = std::string(5000, 'x');
  EXPECT_EQ(ParseMessages(body, "", api.context).status().field(), "messages");
}

TEST(Messages, NoBodyThrows) {
  const ToyApi api;
  Json body = Json::parse(R"({
    "max_tokens": 9, "system": [{"type": "text", "text": "s"}], "stop_sequences": ["a"], "metadata": {"user_id": "u"},
    "messages": [
      {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather",
       "input": {"city": "Oslo"}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text",
       "text": "rain"}]}]}],
    "tools": [{"type": "custom", "name": "weather", "description": "d", "input_schema": {"type": "object",
     "properties": {}}}],
    "tool_choice": {"type": "tool", "name": "weather"}, "temperature": 1, "top_p": 1, "top_k": 1, "stream": true,
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}})");
  ASSERT_TRUE(ParseMessages(body, "", api.context).ok());
  for (const Json& mutation : Mutations(body)) {
    const Result<ParsedRequest> request = ParseMessages(mutation, "", api.context);
    EXPECT_TRUE(request.ok() || request.status().code() == StatusCode::kInvalidArgument) << mutation;
    (void)MessageInputTokens(mutation, api.context);
  }
}

TEST(Messages, CountsTokensOfThePrompt) {
  const ToyApi api;
  Json body = Request(false);
  const size_t tokens = ParseMessages(body, "", api.context)->generation.prompt.size();
  body.erase("max_tokens");
  EXPECT_EQ(*MessageInputTokens(body, api.context), Json({{"input_tokens", tokens}}));
  body["messages"][0]["content"] = std::string(5000, 'x');
  EXPECT_EQ(*MessageInputTokens(body, api.context), Json({{"input_tokens", tokens + 4998}}));
  EXPECT_EQ(MessageInputTokens(Json::array(), api.context).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageInputTokens({{"messages", 1}}, api.context).status().field(), "messages");
}

}  // namespace
}  // namespace outrider
