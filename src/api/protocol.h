// What a wire protocol is to the server: a way to read a request and a way to write the answer, whole or as a stream of
// server-sent events. OpenAI chat, completions and responses, Anthropic messages and llama.cpp's completion are each
// one file with one parse function; the HTTP layer treats them all alike and never looks inside.
//
//   body ──Parse…──► ParsedRequest { GenerationRequest, ResponseWriter }
//                    GenerationRequest ──► Scheduler ──► Chunk… ──► ResponseWriter ──► bytes
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/adapters.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"
#include "engine/media.h"
#include "engine/tokenizer.h"
#include "scheduler/generation.h"

namespace outrider {

// What a request's reasoning is like if the request does not say.
struct ReasoningDefaults {
  std::string format = "auto";  // one of kReasoningFormats
  int budget = -1;              // tokens; -1 = no limit
  std::string budget_message;   // what ends the reasoning when they are used up, before the end itself
};

class ResponseMemory;

// What requests may rely on; fixed at start, but for the adapters' default scales.
struct ApiContext {
  const Tokenizer& tokenizer;
  const ChatTemplate& chat;
  std::string model_name;   // reported in every answer
  int64_t start_time = 0;   // seconds since the epoch
  Pos sequence_length = 0;  // tokens a prompt and its answer have room for
  int n_slots = 1;
  SamplingOptions sampling;                // defaults that a request may override
  int max_tokens = -1;                     // default of max_tokens; -1 = as the context allows
  bool random_seed = true;                 // requests without a seed get a random one instead of sampling.seed
  std::vector<std::string> drafters = {};  // names; none = plain decoding
  std::vector<std::string> aliases = {};   // more names of the model
  std::vector<std::string> stop = {};      // default of stop
  bool ignore_eos = false;                 // default of ignore_eos
  bool reuse_prefix = true;                // default of cache_prompt
  bool verbose = false;                    // default of verbose
  ReasoningDefaults reasoning = {};
  int batch = 2048;                     // rows that the engine decodes at once; what /infill fills from one file
  bool suffix_first = false;            // /infill: the suffix comes before the prefix
  ResponseMemory* responses = nullptr;  // thread-safe; null = responses are not remembered
  MediaReader* media = nullptr;         // reads pictures and sounds; null = the model takes text only
  std::string rank_template = {};       // /rerank: text with {query} and {document}; "" = the two, one after the other
  const AdapterList* adapters = nullptr;  // null = none
};

// Writes the answer to one request. Append is called for each chunk in order; the last one of each choice carries the
// completion. Use either the events it returns (streaming) or Whole() after the last chunk, not both.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // Server-sent events (complete, with blank lines) for this chunk; "" if there is nothing to say yet.
  virtual std::string Append(const Chunk& chunk) = 0;

  // The whole answer; call after the chunk with the completion.
  virtual Json Whole() = 0;

  // An error after the stream began, as an event of this protocol.
  virtual std::string ErrorEvent(const Status& status) const = 0;
};

// A request that has been read and checked. `generation` is to be submitted, and so are `more`, the other choices of
// the same answer, in their order; `writer` answers.
struct ParsedRequest {
  GenerationRequest generation;
  bool stream = false;
  std::unique_ptr<ResponseWriter> writer;
  std::vector<GenerationRequest> more = {};
};

// Memory for the rows of all pictures of a request, held while one of its answers lives. kResourceExhausted if others
// have taken it.
Status HoldPictures(const ApiContext& context, ParsedRequest* request);

// `owner`: whose request it is (GenerationRequest::owner). Errors are those of the client and name the field.
using ParseRequest = Result<ParsedRequest> (*)(const Json& body, const std::string& owner, const ApiContext& context);

// POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, and llama.cpp's /completion and /infill.
Result<ParsedRequest> ParseChatCompletion(const Json& body, const std::string& owner, const ApiContext& context);
Result<ParsedRequest> ParseTextCompletion(const Json& body, const std::string& owner, const ApiContext& context);
Result<ParsedRequest> ParseResponse(const Json& body, const std::string& owner, const ApiContext& context);
Result<ParsedRequest> ParseMessages(const Json& body, const std::string& owner, const ApiContext& context);
Result<ParsedRequest> ParseLlamaCompletion(const Json& body, const std::string& owner, const ApiContext& context);
Result<ParsedRequest> ParseInfill(const Json& body, const std::string& owner, const ApiContext& context);

// Error bodies: OpenAI's shape with llama.cpp's numeric code, and Anthropic's for /v1/messages. `http_status`: 0 = that
// of the status's code.
Json OpenAiError(const Status& status, int http_status = 0);
Json AnthropicError(const Status& status);
int HttpStatus(StatusCode code);

}  // namespace outrider
