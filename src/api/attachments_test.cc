#include "api/attachments.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"
#include "api/base64.h"
#include "api/info.h"
#include "api/input_tokens.h"
#include "api/response_memory.h"
#include "api/responses_input.h"
#include "base/request_budget.h"
#include "engine/fake_media.h"

namespace outrider {
namespace {

std::string Encoded(const std::string& bytes) {
  return EncodeBase64({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string DataUrl(const std::string& bytes) {
  return "data:image/png;base64," + Encoded(bytes);
}

// A context whose model reads pictures.
struct MediaContext : TestContext {
  MediaContext() { api.media = &reader; }
  FakeMediaReader reader{10'000};
};

Json ImagePart(const std::string& bytes) {
  return {{"type", "image_url"}, {"image_url", {{"url", DataUrl(bytes)}}}};
}

Json Chat(const Json& content) {
  return {{"messages", {{{"role", "user"}, {"content", content}}}}};
}

// The prompt's text with each picture's bytes in braces.
std::string Shown(const GenerationRequest& request) {
  std::string text;
  size_t next = 0;
  for (size_t i = 0; i < request.prompt.size();) {
    if (next < request.media.size() && static_cast<size_t>(request.media[next].begin) == i) {
      MediaRows& rows = *request.media[next++].rows;
      EXPECT_TRUE(rows.Compute([] { return true; }).ok());
      text += '{';
      for (Pos row = 0; row < rows.count(); ++row, ++i) text += static_cast<char>(*rows.Row(row));
      text += '}';
    } else {
      text += FakeTokenizer().Piece(request.prompt[i++], false);
    }
  }
  EXPECT_EQ(next, request.media.size());
  return text;
}

std::string ShownPrompt(ParseRequest parse, const Json& body, const MediaContext& context = {}) {
  const Result<ParsedRequest> request = parse(body, "me", context.api);
  EXPECT_TRUE(request.ok()) << request.status().field() << ": " << request.status().message();
  return request.ok() ? Shown(request->generation) : "";
}

TEST(Base64Test, ThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(DecodeBase64(Encoded(bytes)), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(DecodeBase64("aGk"), "hi") << "without padding";
  for (const char* bad : {"a", "aGk==", "a===", "aG k", "aGk=\n", "aG-k", "=", "====", "a=Gk", "aGk=aGk="}) {
    EXPECT_EQ(DecodeBase64(bad), std::nullopt) << bad;
  }
}

TEST(AttachmentsTest, PicturesStandWhereTheyWere) {
  const Json content = {{{"type", "text"}, {"text", "See "}},
                        ImagePart("cat"),
                        {{"type", "text"}, {"text", "or"}},
                        ImagePart("dog"),
                        {{"type", "text"}, {"text", "?"}}};
  const std::string chat = ShownPrompt(ParseChatCompletion, Chat(content));
  EXPECT_NE(chat.find("See [{cat}]or[{dog}]?"), std::string::npos) << chat;

  const Json blocks = {
      {{"type", "text"}, {"text", "See "}},
      {{"type", "image"}, {"source", {{"type", "base64"}, {"media_type", "image/png"}, {"data", Encoded("cat")}}}},
      {{"type", "text"}, {"text", "?"}}};
  Json body = Chat(blocks);
  body["max_tokens"] = 5;
  EXPECT_NE(ShownPrompt(ParseMessages, body).find("See [{cat}]?"), std::string::npos);

  const Json items = {{{"type", "input_text"}, {"text", "See "}},
                      {{"type", "input_image"}, {"image_url", DataUrl("cat")}},
                      {{"type", "input_text"}, {"text", "?"}}};
  const Json response = {{"input", {{{"role", "user"}, {"content", items}}}}};
  EXPECT_NE(ShownPrompt(ParseResponse, response).find("See [{cat}]?"), std::string::npos);

  const Json prompt = {{"prompt_string", "a<__media__>b<__media__>"},
                       {"multimodal_data", {Encoded("x"), Encoded("yz")}}};
  EXPECT_EQ(ShownPrompt(ParseLlamaCompletion, {{"prompt", prompt}}), "a[{x}]b[{yz}]");
  EXPECT_EQ(ShownPrompt(ParseTextCompletion, {{"prompt", {prompt, "text"}}}), "a[{x}]b[{yz}]");
}

TEST(AttachmentsTest, PicturesOfToolsAreRead) {
  const Json image = {{"type", "image"}, {"source", {{"type", "base64"}, {"data", Encoded("cat")}}}};
  const Json body = {
      {"max_tokens", 5},
      {"messages",
       {{{"role", "user"}, {"content", "Draw."}},
        {{"role", "assistant"},
         {"content", {{{"type", "tool_use"}, {"id", "1"}, {"name", "draw"}, {"input", Json::object()}}}}},
        {{"role", "user"},
         {"content", {{{"type", "tool_result"}, {"tool_use_id", "1"}, {"content", Json::array({image})}}}}}}}};
  EXPECT_NE(ShownPrompt(ParseMessages, body).find("[{cat}]"), std::string::npos);
}

TEST(AttachmentsTest, TextThatLooksLikeAMarkerIsText) {
  EXPECT_EQ(ShownPrompt(ParseLlamaCompletion, {{"prompt", "a<__media__>"}}), "a<__media__>");
  const std::string chat =
      ShownPrompt(ParseChatCompletion, Chat({{{"type", "text"}, {"text", "<__media__>"}}, ImagePart("cat")}));
  EXPECT_NE(chat.find("<__media__>[{cat}]"), std::string::npos) << chat;
}

TEST(AttachmentsTest, WhatIsNoFileIsRefused) {
  struct Case {
    Json part;
    const char* field;
    const char* message;  // part of it
  };
  const auto url = [](const std::string& text) { return Json{{"type", "image_url"}, {"image_url", {{"url", text}}}}; };
  const char* kUrl = "messages[0].content[0].image_url.url";
  const Case cases[] = {{url("https://example.com/cat.png"), kUrl, "fetches nothing"},
                        {url("file:///etc/passwd"), kUrl, "reads no files"},
                        {url("malformed"), kUrl, "data: URL"},
                        {url("data:"), kUrl, "base64"},
                        {url("data:image/png,abc"), kUrl, "base64"},
                        {url("data:text/html;base64,aGVsbG8="), kUrl, "image/"},
                        {url("data:image/png;base64,a"), kUrl, "not base64"},
                        {url("data:image/png;base64,"), kUrl, "empty"},
                        {url(DataUrl("!")), "messages[0].content[0]", "this is no picture"},
                        {{{"type", "image_url"}}, "messages[0].content[0].image_url", "string"},
                        {{{"type", "image_url"}, {"image_url", {{"url", 7}}}}, kUrl, "string"},
                        {{{"type", "media_marker"}, {"text", "x"}}, "messages[0].content[0].type", "not for clients"},
                        {{{"type", "video_url"}}, "messages[0].content[0].type", "not supported"},
                        {{{"type", "input_audio"}}, "messages[0].content[0].input_audio", "object"},
                        {{{"type", "input_audio"}, {"input_audio", {{"data", "aGk="}, {"format", "wav"}}}},
                         "messages[0].content[0]",
                         "does not read"}};
  MediaContext context;
  for (const Case& wrong : cases) {
    const Result<ParsedRequest> request = ParseChatCompletion(Chat(Json::array({wrong.part})), "", context.api);
    ASSERT_FALSE(request.ok()) << wrong.part;
    EXPECT_EQ(HttpStatus(request.status().code()), 400) << wrong.part;
    EXPECT_EQ(request.status().field(), wrong.field) << wrong.part;
    EXPECT_NE(request.status().message().find(wrong.message), std::string::npos) << request.status().message();
  }
}

TEST(AttachmentsTest, AModelWithoutProjectorTakesTextOnly) {
  const TestContext context;
  const Result<ParsedRequest> request = ParseChatCompletion(Chat(Json::array({ImagePart("cat")})), "", context.api);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(HttpStatus(request.status().code()), 400);
  EXPECT_NE(request.status().message().find("--mmproj"), std::string::npos);
}

TEST(AttachmentsTest, TheNumberOfFilesIsLimited) {
  MediaContext context;
  const Json most(std::vector<Json>(kMaxAttachments, ImagePart("x"))),
      more(std::vector<Json>(kMaxAttachments + 1, ImagePart("x")));
  EXPECT_TRUE(ParseChatCompletion(Chat(most), "", context.api).ok());
  EXPECT_NE(ParseChatCompletion(Chat(more), "", context.api).status().message().find("32"), std::string::npos);
}

TEST(AttachmentsTest, APictureThatDoesNotFitIsRefused) {
  MediaContext context;
  const Json body = Chat(Json::array({ImagePart(std::string(5000, 'x'))}));
  EXPECT_EQ(ParseChatCompletion(body, "", context.api).status().code(), StatusCode::kContextExceeded);
  const Result<Json> count = ChatInputTokens(body, context.api);
  ASSERT_TRUE(count.ok());
  EXPECT_GT((*count)["input_tokens"], 5000);
}

TEST(AttachmentsTest, RequestsHoldMemoryForTheirPictures) {
  MediaContext context;
  const Json body = Chat(Json::array({ImagePart(std::string(3500, 'x'))}));
  std::vector<ParsedRequest> requests;
  for (const char* owner : {"a", "b", "c"}) {
    auto request = ParseChatCompletion(body, owner, context.api);
    ASSERT_TRUE(request.ok());
    requests.push_back(std::move(*request));
  }
  EXPECT_TRUE(HoldPictures(context.api, &requests[0]).ok());
  EXPECT_TRUE(HoldPictures(context.api, &requests[1]).ok());
  EXPECT_EQ(HoldPictures(context.api, &requests[2]).code(), StatusCode::kResourceExhausted);
  requests.erase(requests.begin());
  EXPECT_TRUE(HoldPictures(context.api, &requests[1]).ok());
}

TEST(AttachmentsTest, PromptsOfOneRequestHaveTheirFilesTogether) {
  MediaContext context;
  const auto prompts = [](size_t count) {
    Json all = Json::array();
    for (size_t i = 0; i < count; ++i) {
      all.push_back({{"prompt_string", "<__media__>"}, {"multimodal_data", {Encoded(std::string(200, 'x'))}}});
    }
    return Json{{"prompt", all}};
  };
  auto most = ParseLlamaCompletion(prompts(kMaxAttachments), "", context.api);
  ASSERT_TRUE(most.ok()) << most.status().message();
  EXPECT_TRUE(HoldPictures(context.api, &*most).ok()) << "what one request holds does not stand in its own way";
  const auto more = ParseLlamaCompletion(prompts(kMaxAttachments + 1), "", context.api);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.status().field(), "prompt");
}

TEST(AttachmentsTest, FilesAndMarkersOfAPromptMustAgree) {
  MediaContext context;
  for (const char* text : {"none", "<__media__> <__media__>"}) {
    const Json prompt = {{"prompt_string", text}, {"multimodal_data", {Encoded("x")}}};
    const Result<ParsedRequest> request = ParseLlamaCompletion({{"prompt", prompt}}, "", context.api);
    ASSERT_FALSE(request.ok()) << text;
    EXPECT_EQ(request.status().field(), "prompt.multimodal_data");
  }
}

TEST(AttachmentsTest, ATemplateIsShownWithThePublicMarker) {
  MediaContext context;
  const Result<Json> applied =
      ApplyTemplateJson(Chat({ImagePart("cat"), {{"type", "text"}, {"text", "?"}}}), context.api);
  ASSERT_TRUE(applied.ok());
  const auto prompt = (*applied)["prompt"].get<std::string>();
  EXPECT_NE(prompt.find("<__media__>?"), std::string::npos) << prompt;
}

TEST(AttachmentsTest, ARememberedResponseHasItsPictures) {
  MediaContext context;
  ResponseMemory memory(1 << 20);
  context.api.responses = &memory;
  const Json items = {{{"type", "input_text"}, {"text", "See "}},
                      {{"type", "input_image"}, {"image_url", DataUrl("cat")}}};
  ResponsesInput first = *ReadResponsesInput({{"input", {{{"role", "user"}, {"content", items}}}}}, "me", context.api);
  EXPECT_TRUE(first.store);
  memory.Keep("me", {first.conversation, {{"id", "resp_1"}}, first.chat.attachments});

  const Json next = {{"input", "Why?"}, {"previous_response_id", "resp_1"}};
  const std::string prompt = ShownPrompt(ParseResponse, next, context);
  EXPECT_NE(prompt.find("See [{cat}]"), std::string::npos) << prompt;

  ResponseMemory small(500);
  small.Keep("me", {first.conversation, {{"id", "resp_1"}}, first.chat.attachments});
  EXPECT_TRUE(small.Find("me", "resp_1", "").ok());
  first.chat.attachments[0].bytes = std::make_shared<const std::string>(1000, 'x');
  small.Keep("me", {first.conversation, {{"id", "resp_2"}}, first.chat.attachments});
  EXPECT_FALSE(small.Find("me", "resp_2", "").ok()) << "the bytes of files count";
}

TEST(AttachmentsTest, TheServerSaysWhatItReads) {
  const TestContext text;
  const MediaContext pictures;
  EXPECT_EQ(PropsJson(text.api, {})["modalities"]["vision"], false);
  EXPECT_EQ(PropsJson(pictures.api, {})["modalities"], (Json{{"vision", true}, {"video", false}, {"audio", false}}));
  EXPECT_EQ(ModelsJson(text.api, {})["models"][0]["capabilities"], Json::array({"completion"}));
  EXPECT_EQ(ModelsJson(pictures.api, {})["models"][0]["capabilities"], Json::array({"completion", "multimodal"}));
}

}  // namespace
}  // namespace outrider
