// What the tests of protocols with parts share: a tokenizer of bytes, a template that remembers what it was given, a
// parser of a toy syntax, and hand-made generations.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/protocol.h"
#include "base/utf8.h"

namespace outrider {

class ByteTokenizer : public Tokenizer {
 public:
  int vocabulary_size() const override { return 256; }
  std::vector<Token> Tokenize(std::string_view text, bool, SpecialTokens) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string Piece(Token token, bool) const override { return std::string(1, static_cast<char>(token)); }
  bool EndsGeneration(Token) const override { return false; }
  Token bos() const override { return kNoToken; }
  Token eos() const override { return kNoToken; }
  uint64_t fingerprint() const override { return 0; }
};

// <think>reasoning</think>content<call name>arguments</call>content…
class ToyParser : public ChatParser {
 public:
  ChatMessage Parse(const std::string& text, bool partial) const override {
    ChatMessage message;
    std::string* target = &message.content;
    for (size_t i = 0; i < text.size();) {
      const size_t end = text[i] == '<' ? text.find('>', i) : std::string::npos;
      if (text[i] == '<' && end == std::string::npos && partial) break;
      if (end == std::string::npos) {
        *target += text[i++];
        continue;
      }
      const std::string tag = text.substr(i + 1, end - i - 1);
      i = end + 1;
      target = &message.content;
      if (tag == "think") target = &message.reasoning;
      if (!tag.starts_with("call ")) continue;
      message.tool_calls.push_back({"id" + std::to_string(message.tool_calls.size()), tag.substr(5), ""});
      target = &message.tool_calls.back().arguments;
    }
    return message;
  }
  bool plain() const override { return false; }
};

class ToyTemplate : public ChatTemplate {
 public:
  Result<ChatPrompt> Apply(const ChatInput& input) const override {
    given = input;
    ChatPrompt prompt;
    for (const Json& message : input.messages) prompt.text += DumpJson(message) + "\n";
    prompt.stop = {"<end>"};
    prompt.parser = std::make_shared<ToyParser>();
    return prompt;
  }
  const std::string& source() const override { return source_; }

  mutable ChatInput given;  // to the last Apply

 private:
  std::string source_;
};

struct ToyApi {
  ByteTokenizer tokenizer;
  ToyTemplate chat;
  ApiContext context{.tokenizer = tokenizer,
                     .chat = chat,
                     .model_name = "toy",
                     .start_time = 0,
                     .sequence_length = 4096,
                     .n_slots = 1,
                     .sampling = {},
                     .max_tokens = -1};
};

// A generation that said `text`, in chunks of at least `step` bytes and whole characters; 0 = one chunk.
inline std::vector<Chunk> MakeChunks(const std::string& text, size_t step, FinishReason reason,
                                     const std::string& stop_string = "") {
  const GenerationTimings timings{.prompt_tokens = 7, .cached_tokens = 5, .generated_tokens = 100};
  std::vector<Chunk> chunks;
  std::string waiting;
  for (const char c : text) {
    waiting += c;
    if (step == 0 || waiting.size() < step || IncompleteUtf8Tail(waiting) > 0) continue;
    chunks.emplace_back();
    chunks.back().text = std::exchange(waiting, "");
    chunks.back().timings = timings;
  }
  chunks.emplace_back();
  chunks.back().text = waiting;
  chunks.back().timings = timings;
  chunks.back().completion = Completion{.reason = reason, .stop_string = stop_string, .error = {}, .timings = timings};
  return chunks;
}

// The tools in OpenAI's shape.
inline Json ToolsJson(const std::vector<ChatTool>& tools) {
  Json list = Json::array();
  for (const ChatTool& tool : tools) list.push_back({{"type", "function"}, {"function", tool.function}});
  return list;
}

// Name and data of each event.
inline std::vector<std::pair<std::string, Json>> ParseEvents(const std::string& stream) {
  std::vector<std::pair<std::string, Json>> events;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    const std::string event = stream.substr(at, end - at);
    const size_t data = event.find("\ndata: ");
    events.emplace_back(event.substr(7, data - 7), Json::parse(event.substr(data + 7)));
    at = end + 2;
  }
  return events;
}

inline std::vector<std::string> EventNames(const std::string& stream) {
  std::vector<std::string> names;
  for (const auto& [name, data] : ParseEvents(stream)) {
    if (names.empty() || names.back() != name || !name.ends_with("delta")) names.push_back(name);
  }
  return names;
}

// Each value anywhere in `body`, replaced by each of some values of other types.
inline std::vector<Json> Mutations(const Json& body) {
  const Json replacements = Json::parse(
      R"([null, true, 0, -1, 1e300, 18446744073709551615, "", "x", [], [[]], [null], [1], {}, {"type": 1},
       {"type": "x"}])");
  std::vector<Json::json_pointer> places;
  std::vector<Json::json_pointer> open{Json::json_pointer("")};
  while (!open.empty()) {
    const Json::json_pointer place = open.back();
    open.pop_back();
    places.push_back(place);
    const Json& value = body[place];
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) open.push_back(place / i);
    if (!value.is_object()) continue;
    for (const auto& [key, member] : value.items()) open.push_back(place / key);
  }
  std::vector<Json> mutations;
  for (const Json::json_pointer& place : places) {
    for (const Json& replacement : replacements) {
      mutations.push_back(body);
      mutations.back()[place] = replacement;
    }
  }
  return mutations;
}

}  // namespace outrider
