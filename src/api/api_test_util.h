// A context without a model, and hand-made generations, for the tests of the protocols.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/protocol.h"
#include "chat/chat_test_util.h"
#include "engine/fake_tokenizer.h"

namespace outrider {

struct TestContext {
  explicit TestContext(const std::string& chat_template = "")
      : chat(MakeTemplate(chat_template)), api{tokenizer, *chat, "test-model", 0, 4096, 4, {}, -1} {}

  FakeTokenizer tokenizer;
  std::unique_ptr<ChatTemplate> chat;
  ApiContext api;
};

inline Chunk MakeChunk(const std::string& text) {
  Chunk chunk;
  chunk.text = text;
  for (const char c : text) {
    const auto token = static_cast<Token>(static_cast<unsigned char>(c));
    chunk.tokens.push_back({token, std::string(1, c), -0.5f, {{token, -0.5f}, {'z', -1.5f}}});
  }
  chunk.timings.generated_tokens = static_cast<int>(text.size());
  return chunk;
}

inline Chunk MakeLastChunk(const std::string& text, FinishReason reason = FinishReason::kEndOfText) {
  Chunk chunk = MakeChunk(text);
  chunk.completion = Completion{reason, "", {}, {7, 3, 5, 0.5, 70.0, 40.0}, 99, 2};
  return chunk;
}

// The JSON of every event; "[DONE]" as a string.
inline std::vector<Json> DataEvents(const std::string& stream) {
  std::vector<Json> events;
  size_t at = 0;
  while (at < stream.size()) {
    const size_t end = stream.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << stream;
    const std::string event = stream.substr(at, end - at);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    const std::string data = event.substr(6);
    events.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
    at = end + 2;
  }
  return events;
}

// Runs the chunks through the request's writer and returns all events.
inline std::vector<Json> Stream(ParsedRequest* request, const std::vector<Chunk>& chunks) {
  std::string stream;
  for (const Chunk& chunk : chunks) stream += request->writer->Append(chunk);
  return DataEvents(stream);
}

inline Json Whole(ParsedRequest* request, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) EXPECT_EQ(request->writer->Append(chunk), "");
  return request->writer->Whole();
}

// Each body must be refused with status 400 naming the field.
inline void ExpectRefused(ParseRequest parse, const std::vector<std::pair<std::string, std::string>>& body_and_field) {
  const TestContext context;
  for (const auto& [body, field] : body_and_field) {
    const Result<ParsedRequest> request = parse(Json::parse(body), "", context.api);
    ASSERT_FALSE(request.ok()) << body;
    EXPECT_EQ(HttpStatus(request.status().code()), 400) << body;
    EXPECT_EQ(request.status().field(), field) << body << ": " << request.status().message();
  }
}

}  // namespace outrider
