#include <gtest/gtest.h>

#include "api/parts_test_util.h"

namespace outrider {
namespace {

using Names = std::vector<std::string>;

const char* const kAnswer = "<think>hmm</think>Let me look.<call weather>{\"city\": \"Oslo\"}</call>";

Json Request(bool stream) {
  return {{"model", "toy"}, {"input", "hi"}, {"stream", stream}, {"metadata", {{"k", "v"}}}};
}

std::string Stream(const ToyApi& api, const std::string& text, size_t step, FinishReason reason) {
  Result<ParsedRequest> request = ParseResponse(Request(true), "", api.context);
  std::string stream;
  for (const Chunk& chunk : MakeChunks(text, step, reason)) stream += request->writer->Append(chunk);
  return stream;
}

Json Whole(const ToyApi& api, const std::string& text, FinishReason reason) {
  Result<ParsedRequest> request = ParseResponse(Request(false), "", api.context);
  for (const Chunk& chunk : MakeChunks(text, 1, reason)) request->writer->Append(chunk);
  return request->writer->Whole();
}

// Ids are random and times pass.
Json WithoutIds(Json response) {
  for (Json& item : response["output"]) item.erase("id");
  response.erase("id");
  response.erase("created_at");
  return response;
}

void AppendTo(Json* text, const Json& more) {
  *text = text->get<std::string>() + more.get<std::string>();
}

// What the client's library builds from the events; its end must be what response.completed says.
Json Accumulate(const std::string& stream) {
  Json response;
  int sequence_number = 0;
  for (const auto& [name, data] : ParseEvents(stream)) {
    EXPECT_EQ(name, data["type"]);
    EXPECT_EQ(data["sequence_number"], sequence_number++);
    if (name == "response.created") response = data["response"];
    if (name == "response.completed" || name == "response.incomplete") {
      EXPECT_EQ(response["output"], data["response"]["output"]);
      return data["response"];
    }
    if (!data.contains("output_index")) continue;
    const size_t index = data["output_index"];
    if (name == "response.output_item.added") {
      EXPECT_EQ(index, response["output"].size());
      EXPECT_EQ(data["item"]["status"], "in_progress");
      response["output"].push_back(data["item"]);
      continue;
    }
    Json& item = response["output"][index];
    if (name == "response.output_item.done") {
      item["status"] = data["item"]["status"];
      EXPECT_EQ(data["item"], item);
      continue;
    }
    EXPECT_EQ(data["item_id"], item["id"]);
    if (name == "response.content_part.added") item["content"].push_back(data["part"]);
    if (name == "response.content_part.done") {
      EXPECT_EQ(data["part"], item["content"][0]);
    }
    if (name == "response.output_text.delta" || name == "response.reasoning_text.delta") {
      AppendTo(&item["content"][0]["text"], data["delta"]);
    }
    if (name == "response.output_text.done" || name == "response.reasoning_text.done") {
      EXPECT_EQ(data["text"], item["content"][0]["text"]);
    }
    if (name == "response.function_call_arguments.delta") AppendTo(&item["arguments"], data["delta"]);
    if (name == "response.function_call_arguments.done") {
      EXPECT_EQ(data["arguments"], item["arguments"]);
    }
  }
  ADD_FAILURE() << "the stream has no end";
  return response;
}

TEST(Responses, WholeAnswer) {
  const ToyApi api;
  const Json response = Whole(api, kAnswer, FinishReason::kEndOfText);
  EXPECT_TRUE(response["id"].get<std::string>().starts_with("resp_"));
  EXPECT_TRUE(response["output"][0]["id"].get<std::string>().starts_with("rs_"));
  EXPECT_TRUE(response["output"][1]["id"].get<std::string>().starts_with("msg_"));
  EXPECT_TRUE(response["output"][2]["id"].get<std::string>().starts_with("fc_"));
  EXPECT_GT(response["created_at"], 1'700'000'000);
  EXPECT_EQ(WithoutIds(response), Json::parse(R"({
    "object": "response", "status": "completed", "background": false, "error": null, "incomplete_details": null,
    "max_output_tokens": null, "model": "toy",
    "output": [
      {"type": "reasoning", "status": "completed", "summary": [], "content": [{"type": "reasoning_text",
       "text": "hmm"}]},
      {"type": "message", "status": "completed", "role": "assistant",
       "content": [{"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}]},
      {"type": "function_call", "status": "completed", "arguments": "{\"city\": \"Oslo\"}", "call_id": "id0",
       "name": "weather"}],
    "previous_response_id": null, "service_tier": "default", "store": false,
    "temperature": 0.8, "top_logprobs": 0, "top_p": 0.95, "truncation": "disabled",
    "usage": {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
     "output_tokens": 100,
              "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 112},
    "instructions": null, "metadata": {"k": "v"}, "parallel_tool_calls": false, "reasoning": {"effort": null,
     "summary": null},
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto", "tools": [], "user": null})"));
}

TEST(Responses, StreamHasTheEventsInOrder) {
  const ToyApi api;
  EXPECT_EQ(EventNames(Stream(api, kAnswer, 1, FinishReason::kEndOfText)),
            (Names{"response.created", "response.in_progress",  //
                   "response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
                   "response.reasoning_text.done", "response.content_part.done", "response.output_item.done",  //
                   "response.output_item.added", "response.content_part.added", "response.output_text.delta",
                   "response.output_text.done", "response.content_part.done", "response.output_item.done",  //
                   "response.output_item.added", "response.function_call_arguments.delta",
                   "response.function_call_arguments.done", "response.output_item.done",  //
                   "response.completed"}));
}

TEST(Responses, StreamAddsUpToTheWholeAnswer) {
  const ToyApi api;
  const Names texts = {
      kAnswer, "", "plain", "<call a>{\"cut\": \"of", "<think>only", "Ünï<call a>{}</call><call b>{\"c\": [1]}"};
  for (const std::string& text : texts) {
    for (const FinishReason reason : {FinishReason::kEndOfText, FinishReason::kLength, FinishReason::kTimeLimit}) {
      const Json whole = WithoutIds(Whole(api, text, reason));
      for (const size_t step : {0, 1, 5}) {
        EXPECT_EQ(WithoutIds(Accumulate(Stream(api, text, step, reason))), whole) << text;
      }
    }
  }
}

TEST(Responses, TextAfterAToolCallIsAnItemOfItsOwn) {
  const ToyApi api;
  const Json response = Accumulate(Stream(api, "a<call f>{}</call>b", 1, FinishReason::kEndOfText));
  ASSERT_EQ(response["output"].size(), 3u);
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "a");
  EXPECT_EQ(response["output"][1]["name"], "f");
  EXPECT_EQ(response["output"][2]["content"][0]["text"], "b");
}

TEST(Responses, CutOffAnswersAreIncomplete) {
  const ToyApi api;
  const Json response = Whole(api, "<think>hmm</think>and th", FinishReason::kLength);
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"], Json({{"reason", "max_output_tokens"}}));
  EXPECT_EQ(response["output"][0]["status"], "completed");
  EXPECT_EQ(response["output"][1]["status"], "incomplete");
  EXPECT_EQ(EventNames(Stream(api, "and th", 1, FinishReason::kLength)).back(), "response.incomplete");
}

TEST(Responses, EmptyAnswersHaveAnEmptyText) {
  const ToyApi api;
  const Json response = Whole(api, "", FinishReason::kEndOfText);
  ASSERT_EQ(response["output"].size(), 1u);
  EXPECT_EQ(response["output"][0]["content"][0]["text"], "");
}

TEST(Responses, ErrorsAreEvents) {
  const ToyApi api;
  Result<ParsedRequest> request = ParseResponse(Request(true), "", api.context);
  Chunk first, last;
  first.text = "so f";
  last.completion =
      Completion{.reason = FinishReason::kError, .stop_string = "", .error = Internal("out of memory"), .timings = {}};
  const size_t before = ParseEvents(request->writer->Append(first)).size();
  const auto events = ParseEvents(request->writer->Append(last));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].second, Json({{"type", "error"},
                                    {"sequence_number", before},
                                    {"code", "server_error"},
                                    {"message", "out of memory"},
                                    {"param", nullptr}}));
  EXPECT_EQ(events[1].first, "response.failed");
  EXPECT_EQ(events[1].second["sequence_number"], before + 1);
  EXPECT_EQ(events[1].second["response"]["status"], "failed");
  EXPECT_EQ(events[1].second["response"]["error"], Json({{"code", "server_error"}, {"message", "out of memory"}}));
}

TEST(Responses, ConversationBecomesChatMessages) {
  const ToyApi api;
  const Json body = Json::parse(R"({
    "instructions": "Be brief.", "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.25, "store": true, "user": "u",
    "parallel_tool_calls": false, "background": false, "previous_response_id": null,
    "input": [
      {"role": "developer", "content": "Be kind."},
      {"role": "user", "content": [{"type": "input_text", "text": "weather"}, {"type": "input_text",
       "text": "please"}]},
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hmm"}]},
      {"type": "reasoning", "id": "rs_2", "summary": []},
      {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "Let me ", "annotations": []}, {"type": "output_text",
        "text": "look."}]},
      {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{\"city\": \"Oslo\"}"},
      {"type": "function_call", "call_id": "c2", "name": "time", "arguments": ""},
      {"type": "function_call_output", "call_id": "c1", "output": "rain"},
      {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "noon"}]},
      {"type": "message", "role": "user", "content": "thanks"}],
    "tools": [{"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"},
     "strict": false},
              {"type": "function", "name": "time"}]})");
  Result<ParsedRequest> request = ParseResponse(body, "", api.context);
  ASSERT_TRUE(request.ok()) << request.status().field() << request.status().message();
  EXPECT_EQ(api.chat.given.messages, Json::parse(R"([
    {"role": "system", "content": "Be brief.\nBe kind."},
    {"role": "user", "content": "weather\nplease"},
    {"role": "assistant", "content": "Let me look.", "reasoning_content": "hmm", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}},
      {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "tool", "tool_call_id": "c2", "content": "noon"},
    {"role": "user", "content": "thanks"}])"));
  EXPECT_EQ(ToolsJson(api.chat.given.tools), Json::parse(R"([
    {"type": "function", "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "time", "description": "", "parameters": {"type": "object",
     "properties": {}}}}])"));
  EXPECT_FALSE(api.chat.given.parallel_tool_calls);
  EXPECT_EQ(request->generation.max_tokens, 9);
  EXPECT_EQ(request->generation.sampling.temperature, 0.5f);
  EXPECT_FALSE(request->stream);

  for (const Chunk& chunk : MakeChunks("x", 1, FinishReason::kEndOfText)) request->writer->Append(chunk);
  const Json response = request->writer->Whole();
  EXPECT_EQ(response["instructions"], "Be brief.");
  EXPECT_EQ(response["max_output_tokens"], 9);
  EXPECT_EQ(response["temperature"], 0.5);
  EXPECT_EQ(response["user"], "u");
  EXPECT_EQ(response["tools"], Json::parse(R"([
    {"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"}, "strict": false},
    {"type": "function", "name": "time", "description": null, "parameters": {"type": "object", "properties": {}},
     "strict": true}])"));
}

TEST(Responses, ToolChoice) {
  const ToyApi api;
  Json body = Request(false);
  body["tools"] = Json::parse(R"([{"type": "function", "name": "a"}, {"type": "function", "name": "b"}])");
  const auto choose = [&](const Json& choice) {
    body["tool_choice"] = choice;
    EXPECT_TRUE(ParseResponse(body, "", api.context).ok());
    return api.chat.given;
  };
  EXPECT_EQ(choose("auto").tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(choose("none").tool_choice, ToolChoice::kNone);
  EXPECT_EQ(choose("required").tool_choice, ToolChoice::kRequired);
  const ChatInput named = choose({{"type", "function"}, {"name", "b"}});
  EXPECT_EQ(named.tool_choice, ToolChoice::kRequired);
  ASSERT_EQ(named.tools.size(), 1u);
  EXPECT_EQ(named.tools[0].name(), "b");
}

TEST(Responses, TextFormat) {
  const ToyApi api;
  Json body = Request(false);
  const Json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}};
  const Json format = {{"type", "json_schema"}, {"name", "n"}, {"schema", schema}, {"strict", true}};
  body["text"] = {{"format", format}};
  Result<ParsedRequest> request = ParseResponse(body, "", api.context);
  ASSERT_TRUE(request.ok());
  ASSERT_TRUE(api.chat.given.json_schema);
  EXPECT_EQ(api.chat.given.json_schema->json(), schema);
  for (const Chunk& chunk : MakeChunks("{}", 1, FinishReason::kEndOfText)) request->writer->Append(chunk);
  EXPECT_EQ(request->writer->Whole()["text"], body["text"]);

  body["text"] = {{"format", {{"type", "json_object"}}}};
  EXPECT_TRUE(ParseResponse(body, "", api.context).ok());
  ASSERT_TRUE(api.chat.given.json_schema);
  EXPECT_EQ(api.chat.given.json_schema->json(), Json({{"type", "object"}}));
  body["text"] = {{"format", {{"type", "text"}}}, {"verbosity", "low"}};
  EXPECT_TRUE(ParseResponse(body, "", api.context).ok());
  EXPECT_FALSE(api.chat.given.json_schema);
}

TEST(Responses, ReasoningEffortReachesTheTemplate) {
  const ToyApi api;
  Json body = Request(false);
  body["reasoning"] = {{"effort", "low"}};
  EXPECT_TRUE(ParseResponse(body, "", api.context).ok());
  EXPECT_EQ(api.chat.given.template_arguments, Json({{"reasoning_effort", "low"}}));
  body["reasoning"] = {{"effort", "none"}};
  EXPECT_TRUE(ParseResponse(body, "", api.context).ok());
  EXPECT_EQ(api.chat.given.template_arguments, Json({{"enable_thinking", false}}));
}

TEST(Responses, MistakesAreNamed) {
  const ToyApi api;
  const char* const no_state = "not supported: this server keeps no such state";
  struct Case {
    const char* patch;  // merged into a good request
    const char* field;
    const char* message;  // part of it
  };
  const Case cases[] = {
      {R"({"input": null})", "input", "string or a list"},
      {R"({"input": []})", "input", "string or a list"},
      {R"({"input": 7})", "input", "string or a list"},
      {R"({"input": [{"type": "reasoning"}]})", "input", "no messages"},
      {R"({"input": [7]})", "input[0]", "object"},
      {R"({"input": [{"type": 7}]})", "input[0].type", "string"},
      {R"({"input": [{"type": "computer_call"}]})", "input[0].type", "computer_call"},
      {R"({"input": [{"type": "item_reference", "id": "msg_1"}]})", "input[0].type", no_state},
      {R"({"input": [{"content": "x"}]})", "input[0].role", "\"user\""},
      {R"({"input": [{"role": "tool", "content": "x"}]})", "input[0].role", "\"user\""},
      {R"({"input": [{"role": "user"}]})", "input[0].content", "required"},
      {R"({"input": [{"role": "user", "content": 1}]})", "input[0].content", "string or a list"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input[0].content[0].image_url",
       "string"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "x"}]}]})",
       "input[0].content[0].file_id", "keeps no files"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text"}]}]})", "input[0].content[0].text", "string"},
      {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})", "input[0].call_id", "required"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]})", "input[0].name", "required"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]})", "input[0].arguments",
       "JSON"},
      {R"({"input": [{"type": "function_call_output", "output": "x"}]})", "input[0].call_id", "required"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c"}]})", "input[0].output", "required"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]}]})",
       "input[0].output[0].type", "cannot be read"},
      {R"({"instructions": 1})", "instructions", "string"},
      {R"({"previous_response_id": "resp_1"})", "previous_response_id", "does not remember"},
      {R"({"conversation": "conv_1"})", "conversation", no_state},
      {R"({"background": true})", "background", no_state},
      {R"({"tools": {}})", "tools", "list"},
      {R"({"tools": [1]})", "tools[0]", "object"},
      {R"({"tools": [{"type": "web_search"}]})", "tools[0].type", "web_search"},
      {R"({"tools": [{"type": "function"}]})", "tools[0].name", "required"},
      {R"({"tools": [{"type": "function", "name": "f", "parameters": 1}]})", "tools[0].parameters", "object"},
      {R"({"tools": [{"type": "function", "name": "f", "parameters": {"type": "nonsense"}}]})", "tools[0].parameters",
       ""},
      {R"({"tool_choice": "any"})", "tool_choice", "\"auto\""},
      {R"({"tool_choice": "required"})", "tool_choice", "no tools"},
      {R"({"tool_choice": {"type": "file_search"}})", "tool_choice.type", "function"},
      {R"({"tool_choice": {"type": "function", "name": "g"}})", "tool_choice.name", "not among"},
      {R"({"text": 1})", "text", "object"},
      {R"({"text": {"format": {"type": "xml"}}})", "text.format.type", "json_object"},
      {R"({"text": {"format": {"type": "json_schema", "schema": {}}}})", "text.format.name", "required"},
      {R"({"text": {"format": {"type": "json_schema", "name": "n"}}})", "text.format.schema", "required"},
      {R"({"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "nonsense"}}}})",
       "text.format.schema", ""},
      {R"({"max_output_tokens": 0})", "max_output_tokens", "whole number"},
      {R"({"temperature": "hot"})", "temperature", "number"},
      {R"({"reasoning": {"effort": 1}})", "reasoning.effort", "string"},
      {R"({"stream": 1})", "stream", "true or false"},
      {R"({"store": 1})", "store", "true or false"},
      {R"({"metadata": "m"})", "metadata", "object"},
  };
  for (const Case& c : cases) {
    Json body = Request(false);
    body.merge_patch(Json::parse(c.patch));
    const Result<ParsedRequest> request = ParseResponse(body, "", api.context);
    ASSERT_FALSE(request.ok()) << c.patch;
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << c.patch;
    EXPECT_EQ(request.status().field(), c.field) << c.patch;
    EXPECT_NE(request.status().message().find(c.message), std::string::npos)
        << c.patch << ": " << request.status().message();
  }
}

TEST(Responses, TooLongIsBlamedOnTheInput) {
  const ToyApi api;
  Json body = Request(false);
  body["input"] = std::string(5000, 'x');
  EXPECT_EQ(ParseResponse(body, "", api.context).status().field(), "input");
}

TEST(Responses, NoBodyThrows) {
  const ToyApi api;
  const Json body = Json::parse(R"({
    "instructions": "Be brief.", "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.25, "store": true, "user": "u",
    "parallel_tool_calls": false, "background": false, "previous_response_id": null, "metadata": {"k": "v"},
     "stream": true,
    "input": [
      {"role": "user", "content": [{"type": "input_text", "text": "weather"}]},
      {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "noon"}]}],
    "tools": [{"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"},
     "strict": false}],
    "tool_choice": {"type": "function", "name": "weather"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}})");
  ASSERT_TRUE(ParseResponse(body, "", api.context).ok());
  for (const Json& mutation : Mutations(body)) {
    const Result<ParsedRequest> request = ParseResponse(mutation, "", api.context);
    EXPECT_TRUE(request.ok() || request.status().code() == StatusCode::kInvalidArgument) << mutation;
  }
}

}  // namespace
}  // namespace outrider
