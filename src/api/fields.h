// Reading request fields: each reader leaves the default if the field is absent or null, and otherwise insists on type
// and range with an error that names the field. So every protocol refuses the same nonsense in the same words.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "api/protocol.h"
#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Collects the first error, so that a parse function reads as a list of fields and checks once at the end.
class FieldReader {
 public:
  explicit FieldReader(const Json& body,
                       std::string path = "");  // `path` is put before names in errors: "text." for text.format

  bool Has(const char* name) const;        // present and not null
  const Json& At(const char* name) const;  // the value; null if absent

  void Bool(const char* name, bool* out);
  void Int(const char* name, int64_t min, int64_t max, int* out);  // whole numbers, also written as 10.0
  void Seed(const char* name, uint64_t* out);                      // -1 or absent leaves *out
  void Float(const char* name, double min, double max, float* out);
  void String(const char* name, std::string* out);
  void StringOrList(const char* name, size_t max_items, std::vector<std::string>* out);  // "stop"
  void Object(const char* name, Json* out);
  void Array(const char* name, Json* out);

  void Fail(const char* name, const std::string& message);  // records an error about a field
  const Status& status() const { return status_; }

 private:
  const Json& body_;
  std::string path_;
  Status status_;
};

// Sampling fields under llama.cpp's names (and OpenAI's where they are the same), stop strings, seed, logit_bias: sets
// `request->sampling`, `stop`, `ignore_eos`, `slot`, `reuse_prefix`, `time_limit` from the context's defaults and the
// body. A request without a seed gets a random one.
Status ReadGenerationFields(const Json& body, const ApiContext& context, GenerationRequest* request);

// What a protocol lets a client say about the length of an answer.
enum class MaxTokensLimits {
  kPositive,              // Responses, Anthropic
  kFromMinusOne,          // OpenAI's older endpoints, where llama.cpp's clients write -1 for no limit
  kFromMinusOneWithZero,  // llama.cpp's own, where 0 only puts the prompt into memory
};

// Sets request->max_tokens from the first of `names` that is present, bounded by the server's limit.
Status ReadMaxTokens(const Json& body, const std::vector<const char*>& names, MaxTokensLimits limits,
                     const ApiContext& context, GenerationRequest* request);

// "response_format" (text, json_object, json_schema) and llama.cpp's "json_schema" and "grammar" into `input`.
Status ReadOutputFormat(const Json& body, ChatInput* input);

// Applies the template, tokenises, and fills prompt, grammar, stop strings; checks that the prompt fits the context.
// The parser for the answer comes back. The common path of all chat protocols.
Result<std::shared_ptr<const ChatParser>> PrepareChat(const ChatInput& input, const ApiContext& context,
                                                      GenerationRequest* request);

// Sets request->sampling.grammar from GBNF text or JSON schema for endpoints without a chat template.
Status SetGrammar(const std::string& gbnf, const Json& json_schema, GenerationRequest* request);

// kInvalidArgument if the prompt leaves no room for an answer.
Status CheckPromptFits(size_t prompt_tokens, const ApiContext& context, const char* field);

// "chatcmpl-…", "call_…": prefix and 24 random letters and digits.
std::string MakeId(const char* prefix);

// llama.cpp's `timings` object.
Json TimingsJson(const GenerationTimings& timings);

// OpenAI's finish_reason ("stop", "length", "tool_calls").
const char* OpenAiFinishReason(const Completion& completion, bool has_tool_calls);

// One server-sent event. `name` "" leaves out the event: line.
std::string SseEvent(std::string_view name, const Json& data);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

}  // namespace outrider
