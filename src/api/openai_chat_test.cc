#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "api/chat_input.h"

namespace outrider {
namespace {

ParsedRequest Parse(const std::string& body, const TestContext& context) {
  Result<ParsedRequest> request = ParseChatCompletion(Json::parse(body), "", context.api);
  EXPECT_TRUE(request.ok()) << request.status().field() << ": " << request.status().message();
  return std::move(*request);
}

constexpr const char* kToolBody = R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function",
  "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}},
  {"type": "function", "function": {"name": "now"}}])";
constexpr const char* kToolText =
    "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";

// The number of tools is looked at before any of them.
TEST(OpenAiChatToolsTest, TooManyToolsAreRefusedUnread) {
  Json tools = Json::array();
  for (int i = 0; i < 300; ++i) tools.push_back("not even an object");
  const Result<ChatInput> input =
      ReadChatInput({{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"tools", std::move(tools)}});
  ASSERT_FALSE(input.ok());
  EXPECT_EQ(input.status().field(), "tools");
  EXPECT_NE(input.status().message().find("at most 256 tools"), std::string::npos) << input.status().message();
}

TEST(OpenAiChatTest, RequestIsRead) {
  const TestContext context;
  const ParsedRequest request =
      Parse(R"({"model": "x", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 9,
    "temperature": 0.5, "stop": ["a"], "logprobs": true, "top_logprobs": 2, "unknown_field": [1]})",
            context);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.generation.max_tokens, 9);
  EXPECT_EQ(request.generation.sampling.temperature, 0.5f);
  EXPECT_EQ(request.generation.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(request.generation.top_logprobs, 2);
  std::string prompt;
  for (const Token token : request.generation.prompt) prompt += context.tokenizer.Piece(token, true);
  EXPECT_EQ(prompt, "<bos><|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(OpenAiChatTest, WholeAnswer) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"messages": [{"role": "user", "content": "hi"}]})", context);
  const Json answer = Whole(&request, {MakeChunk("Hel"), MakeLastChunk("lo")});
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_GT(answer["created"].get<int64_t>(), 1700000000);
  EXPECT_EQ(answer["model"], "test-model");
  EXPECT_EQ(answer["system_fingerprint"], "build-outrider-0.1");
  EXPECT_EQ(answer["choices"], Json::parse(R"([{"index": 0, "message": {"role": "assistant", "content": "Hello"},
    "logprobs": null, "finish_reason": "stop"}])"));
  EXPECT_EQ(answer["usage"], Json::parse(R"({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 3}})"));
  EXPECT_EQ(answer["seed"], 99);
  EXPECT_EQ(answer["timings"]["predicted_per_second"], 100.0);
}

TEST(OpenAiChatTest, StreamedAnswer) {
  const TestContext context;
  ParsedRequest request = Parse(R"({"messages": [{"role": "user", "content": "hi"}], "stream": true})", context);
  EXPECT_TRUE(request.stream);
  const std::vector<Json> events =
      Stream(&request, {MakeChunk("Hel"), MakeChunk(""), MakeLastChunk("lo", FinishReason::kLength)});
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"], Json::parse(R"([{"index": 0, "delta": {"role": "assistant", "content": null},
    "logprobs": null, "finish_reason": null}])"));
  EXPECT_EQ(events[1]["choices"][0]["delta"], Json({{"content", "Hel"}}));
  EXPECT_EQ(events[2]["choices"][0]["delta"], Json({{"content", "lo"}}));
  EXPECT_TRUE(events[2]["choices"][0]["finish_reason"].is_null());
  EXPECT_EQ(events[3]["choices"][0]["delta"], Json::object());
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events[3]["seed"], 99);
  EXPECT_EQ(events[3]["timings"]["prompt_n"], 7);
  EXPECT_FALSE(events[3].contains("usage"));
  EXPECT_EQ(events[4], "[DONE]");
  for (int i = 1; i < 4; ++i) EXPECT_EQ(events[i]["id"], events[0]["id"]);
}

TEST(OpenAiChatTest, UsageComesLastIfAskedFor) {
  const TestContext context;
  ParsedRequest request = Parse(
      R"({"messages": [{"role": "user", "content": "hi"}], "stream": true, "stream_options": {"include_usage": true}})",
      context);
  const std::vector<Json> events = Stream(&request, {MakeLastChunk("x")});
  ASSERT_EQ(events.size(), 5u);
  EXPECT_TRUE(events[0].contains("usage") && events[0]["usage"].is_null());
  EXPECT_EQ(events[3]["choices"], Json::array());
  EXPECT_EQ(events[3]["usage"]["total_tokens"], 15);
  EXPECT_EQ(events[3]["timings"]["predicted_n"], 5) << "as llama.cpp has it";
}

TEST(OpenAiChatTest, Logprobs) {
  const TestContext context;
  const std::string body = R"({"messages": [{"role": "user", "content": "hi"}], "logprobs": true, "top_logprobs": 2)";
  ParsedRequest whole = Parse(body + "}", context);
  const Json answer = Whole(&whole, {MakeLastChunk("ab")});
  const Json expected = Json::parse(R"([
    {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97]},
                                                                   {"token": "z", "logprob": -1.5, "bytes": [122]}]},
    {"token": "b", "logprob": -0.5, "bytes": [98], "top_logprobs": [{"token": "b", "logprob": -0.5, "bytes": [98]},
                                                                   {"token": "z", "logprob": -1.5, "bytes": [122]}]}])");
  EXPECT_EQ(answer["choices"][0]["logprobs"]["content"], expected);

  ParsedRequest streamed = Parse(body + R"(, "stream": true})", context);
  Json seen = Json::array();
  Chunk held = MakeChunk("a");
  held.text = "";  // a token whose text is not final yet
  for (const Json& event : Stream(&streamed, {held, MakeLastChunk("b")})) {
    if (event.is_string() || event["choices"][0]["logprobs"].is_null()) continue;
    for (const Json& item : event["choices"][0]["logprobs"]["content"]) seen.push_back(item);
  }
  EXPECT_EQ(seen, expected);
}

TEST(OpenAiChatTest, WholeToolCall) {
  const TestContext context;
  ParsedRequest request = Parse(std::string(kToolBody) + "}", context);
  EXPECT_TRUE(request.generation.sampling.grammar.lazy);
  const Json answer = Whole(&request, {MakeLastChunk(kToolText)});
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_TRUE(choice["message"]["content"].is_null());
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  const Json& tool_call = choice["message"]["tool_calls"][0];
  EXPECT_TRUE(tool_call["id"].get<std::string>().starts_with("call_"));
  EXPECT_EQ(tool_call["type"], "function");
  EXPECT_EQ(tool_call["function"]["name"], "get_weather");
  EXPECT_EQ(Json::parse(tool_call["function"]["arguments"].get<std::string>()), Json({{"city", "Rome"}}));
}

TEST(OpenAiChatTest, StreamedToolCall) {
  const TestContext context;
  ParsedRequest request = Parse(std::string(kToolBody) + R"(, "stream": true})", context);
  std::vector<Chunk> chunks;
  for (const char c : std::string(kToolText)) chunks.push_back(MakeChunk(std::string(1, c)));
  chunks.push_back(MakeLastChunk(""));
  const std::vector<Json> events = Stream(&request, chunks);
  std::string arguments, name;
  for (const Json& event : events) {
    if (event.is_string() || !event["choices"][0]["delta"].contains("tool_calls")) continue;
    const Json& delta = event["choices"][0]["delta"]["tool_calls"][0];
    EXPECT_EQ(delta["index"], 0);
    EXPECT_EQ(delta.contains("id"), delta["function"].contains("name"));
    if (delta["function"].contains("name")) name += delta["function"]["name"].get<std::string>();
    arguments += delta["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(name, "get_weather");
  EXPECT_EQ(Json::parse(arguments), Json({{"city", "Rome"}}));
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "tool_calls");
}

TEST(OpenAiChatTest, ToolChoice) {
  const TestContext context;
  const auto grammar = [&](const std::string& choice) {
    return Parse(std::string(kToolBody) + R"(, "tool_choice": )" + choice + "}", context).generation.sampling.grammar;
  };
  EXPECT_EQ(grammar("\"none\"").text, "");
  EXPECT_TRUE(grammar("\"auto\"").lazy);
  EXPECT_FALSE(grammar("\"required\"").lazy);
  const GrammarOptions named = grammar(R"({"type": "function", "function": {"name": "now"}})");
  EXPECT_FALSE(named.lazy);
  EXPECT_NE(named.text.find("now"), std::string::npos);
  EXPECT_EQ(named.text.find("get_weather"), std::string::npos);
}

TEST(OpenAiChatTest, ReasoningHasItsOwnField) {
  const TestContext context(
      "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}{%- if m.role == 'assistant' and "
      "m.reasoning_content %}"
      "{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}{{- m.content + '<|im_end|>\\n' "
      "}}{%- endfor %}"
      "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}");
  ParsedRequest request = Parse(R"({"messages": [{"role": "user", "content": "hi"}]})", context);
  const Json message = Whole(&request, {MakeLastChunk("<think>\nhmm\n</think>\n\nYes")})["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Yes");
  EXPECT_NE(message["reasoning_content"].get<std::string>().find("hmm"), std::string::npos);
}

TEST(OpenAiChatTest, ProvenanceIsToldOnceForEachToken) {
  const TestContext context;
  const std::string body = R"({"messages": [{"role": "user", "content": "hi"}], "speculative": {"provenance": true})";
  const Json expected = Json::parse(R"([{"text": "a", "drafter": "suffix"}, {"text": "b", "drafter": null}])");
  Chunk first = MakeChunk("a");
  first.tokens[0].drafter = "suffix";
  ParsedRequest whole = Parse(body + "}", context), streamed = Parse(body + R"(, "stream": true})", context);
  EXPECT_EQ(Whole(&whole, {first, MakeLastChunk("b")})["provenance"], expected);
  Json seen = Json::array();
  for (const Json& event : Stream(&streamed, {first, MakeLastChunk("b")})) {
    if (event.is_string()) continue;
    for (const Json& token : event["provenance"]) seen.push_back(token);
  }
  EXPECT_EQ(seen, expected);
  ParsedRequest without = Parse(R"({"messages": [{"role": "user", "content": "hi"}]})", context);
  EXPECT_FALSE(Whole(&without, {first, MakeLastChunk("b")}).contains("provenance"));
}

TEST(OpenAiChatTest, ToolsThatCannotBeCalledAreNotLookedAt) {
  const TestContext context;
  const std::string tools = R"({"messages": [{"role": "user", "content": "hi"}], "tools": [5,
    {"type": "function", "function": {"name": "bad", "parameters": {"type": "wizard"}}},
    {"type": "function", "function": {"name": "now"}}], "tool_choice": {"type": "function", "function": {"name": )";
  const ParsedRequest request = Parse(tools + R"("now"}}})", context);
  EXPECT_NE(request.generation.sampling.grammar.text.find("now"), std::string::npos);
  ExpectRefused(&ParseChatCompletion, {{tools + R"("bad"}}})", "tools[1].function.parameters"}});
}

TEST(OpenAiChatTest, ErrorsInAStreamAreEvents) {
  const TestContext context;
  const ParsedRequest request = Parse(R"({"messages": [{"role": "user", "content": "hi"}], "stream": true})", context);
  const std::vector<Json> events = DataEvents(request.writer->ErrorEvent(Internal("the engine failed")));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["error"]["message"], "the engine failed");
}

TEST(OpenAiChatTest, BadInputIsRefusedByName) {
  const std::string hi = R"("messages": [{"role": "user", "content": "hi"}])";
  ExpectRefused(
      &ParseChatCompletion,
      {{R"([])", ""},
       {R"("x")", ""},
       {R"({})", "messages"},
       {R"({"messages": null})", "messages"},
       {R"({"messages": []})", "messages"},
       {R"({"messages": "hi"})", "messages"},
       {R"({"messages": [{"role": "wizard", "content": "x"}]})", "messages[0].role"},
       {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})", "messages[0].content[0].image_url"},
       {R"({"messages": [{"role": "user", "content": ")" + std::string(5000, 'x') + R"("}]})", "messages"},
       {"{" + hi + R"(, "stream": 1})", "stream"},
       {"{" + hi + R"(, "stream_options": []})", "stream_options"},
       {"{" + hi + R"(, "stream_options": {"include_usage": 1}})", "stream_options.include_usage"},
       {"{" + hi + R"(, "max_tokens": -5})", "max_tokens"},
       {"{" + hi + R"(, "max_tokens": 99999999999})", "max_tokens"},
       {"{" + hi + R"(, "temperature": "x"})", "temperature"},
       {"{" + hi + R"(, "n": 0})", "n"},
       {"{" + hi + R"(, "n": 65})", "n"},
       {"{" + hi + R"(, "continue_final_message": true})", "messages[0]"},
       {"{" + hi + R"(, "continue_final_message": 1})", "continue_final_message"},
       {"{" + hi + R"(, "continue_final_message": true, "add_generation_prompt": true})", "continue_final_message"},
       {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                         {"role": "assistant", "content": "c"}]})",
        "messages[2]"},
       {"{" + hi + R"(, "logprobs": 5})", "logprobs"},
       {"{" + hi + R"(, "logprobs": true, "top_logprobs": 21})", "top_logprobs"},
       {"{" + hi + R"(, "top_logprobs": 2})", "top_logprobs"},
       {"{" + hi + R"(, "tools": {}})", "tools"},
       {"{" + hi + R"(, "tools": [{"type": "function", "function": {}}]})", "tools[0].function.name"},
       {"{" + hi + R"(, "tools": [{"type": "function", "function": {"name": "f"}}, 5]})", "tools[1]"},
       {"{" + hi + R"(, "tool_choice": "required"})", "tool_choice"},
       {"{" + hi + R"(, "tool_choice": "maybe"})", "tool_choice"},
       {"{" + hi + R"(, "tool_choice": 5})", "tool_choice"},
       {"{" + hi + R"(, "tool_choice": {"type": "function", "function": {"name": "f"}}})", "tool_choice.function.name"},
       {"{" + hi + R"(, "tool_choice": {"type": "function", "function": {}}})", "tool_choice.function.name"},
       {"{" + hi + R"(, "tool_choice": {"type": "function", "function": 5}})", "tool_choice.function"},
       {"{" + hi +
            R"(, "tools": [5, {"function": 5}], "tool_choice": {"type": "function", "function": {"name": "f"}}})",
        "tool_choice.function.name"},
       {"{" + hi + R"(, "parallel_tool_calls": 5})", "parallel_tool_calls"},
       {"{" + hi + R"(, "response_format": 5})", "response_format"},
       {"{" + hi + R"(, "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}})",
        "response_format.json_schema.schema"},
       {"{" + hi + R"(, "reasoning_effort": 5})", "reasoning_effort"},
       {"{" + hi + R"(, "chat_template_kwargs": 5})", "chat_template_kwargs"}});
}

}  // namespace
}  // namespace outrider
