// The endpoints that take JSON, for the fuzz targets that send them requests.
#pragma once

#include <memory>

#include "api/embeddings.h"
#include "api/info.h"
#include "api/input_tokens.h"
#include "api/protocol.h"
#include "api/response_memory.h"
#include "engine/fake_media.h"
#include "engine/fake_tokenizer.h"
#include "require.h"

namespace outrider {

using Endpoint = Result<Json> (*)(const Json&, const ApiContext&);

// A model that has all that endpoints may want.
class Tokens : public FakeTokenizer {
 public:
  InfillTokens infill() const override { return {.prefix = 1, .suffix = 2, .middle = 3, .repository = 4, .file = 5}; }
};

class Vectors : public Embedder {
 public:
  explicit Vectors(EmbeddingKind kind) : kind_(kind) {}
  EmbeddingKind kind() const override { return kind_; }
  int max_tokens() const override { return 512; }
  Result<std::vector<float>> Embed(std::span<const Token> tokens) override {
    return std::vector<float>{static_cast<float>(tokens.size()), 1, 2};
  }
  Result<std::vector<std::vector<float>>> EmbedEach(std::span<const Token> tokens) override {
    return std::vector<std::vector<float>>(tokens.size(), {1, 2});
  }

 private:
  const EmbeddingKind kind_;
};

template <EmbeddingKind kKind, ParseEmbeddingRequest kParse>
Result<Json> Embeddings(const Json& body, const ApiContext& context) {
  Vectors vectors(kKind);
  const Result<EmbeddingRequest> request = kParse(body, context, vectors);
  if (!request.ok()) return request.status();
  return AnswerEmbeddings(*request, vectors, [](size_t) { return Status(); });
}

// One of the two is set.
struct EndpointChoice {
  ParseRequest parse = nullptr;
  Endpoint answer = nullptr;
};
inline constexpr EndpointChoice kEndpoints[] = {{ParseChatCompletion},
                                                {ParseTextCompletion},
                                                {ParseResponse},
                                                {ParseMessages},
                                                {ParseLlamaCompletion},
                                                {nullptr, TokenizeJson},
                                                {nullptr, ApplyTemplateJson},
                                                {ParseInfill},
                                                {nullptr, ChatInputTokens},
                                                {nullptr, ResponseInputTokens},
                                                {nullptr, MessageInputTokens},
                                                {nullptr, Embeddings<EmbeddingKind::kText, ParseEmbeddings>},
                                                {nullptr, Embeddings<EmbeddingKind::kTokens, ParseLlamaEmbeddings>},
                                                {nullptr, Embeddings<EmbeddingKind::kRank, ParseRerank>}};

// ChatML with thoughts before what is said.
inline constexpr const char* kThinking =
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' and message.reasoning_content %}"
    "{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}"
    "{{- message.content + '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

inline bool Remember(ResponseMemory* responses) {
  responses->Keep("owner", {Json::parse(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])"),
                            {{"id", "resp_1"}}});
  return responses->Find("owner", "resp_1", "").ok();
}

inline const ApiContext& Context() {
  static const Tokens tokenizer;
  static const std::unique_ptr<ChatTemplate> chat = std::move(*ChatTemplate::Create(kThinking, "<bos>", "<eos>"));
  static ResponseMemory responses(1 << 20);
  static FakeMediaReader media;
  static const bool remembered = Remember(&responses);
  Require(remembered, "there is something to go on from");
  static const AdapterList adapters({{"a.gguf", "", "", 1}, {"b.gguf", "", "", 2}}, {1, 0});
  static const ApiContext context{.tokenizer = tokenizer,
                                  .chat = *chat,
                                  .model_name = "fuzz",
                                  .start_time = 0,
                                  .sequence_length = 4096,
                                  .n_slots = 2,
                                  .sampling = {},
                                  .max_tokens = -1,
                                  .responses = &responses,
                                  .media = &media,
                                  .adapters = &adapters};
  return context;
}

}  // namespace outrider
