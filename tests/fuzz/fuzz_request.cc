// Any bytes as a request: the first byte picks the protocol, the rest up to a NUL (which JSON cannot have) is the body,
// and what follows is what the model answers if the request is accepted. Nothing may crash, throw or hang; requests are
// refused with an error of the client; answers are valid UTF-8.
#include <cmath>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"
#include "endpoints.h"
#include "require.h"

namespace outrider {
namespace {

void CheckRefusal(const Status& status) {
  const bool forgotten = status.code() == StatusCode::kNotFound && status.field() == "previous_response_id";
  Require(HttpStatus(status.code()) == 400 || status.code() == StatusCode::kUnsupported || forgotten,
          "a bad request is the client's error");
  Require(!status.message().empty(), "an error says what is wrong");
  Require(IsValidUtf8(DumpJson(OpenAiError(status))), "OpenAI's error is valid UTF-8");
  Require(IsValidUtf8(DumpJson(AnthropicError(status))), "Anthropic's error is valid UTF-8");
}

void CheckRequest(const GenerationRequest& request) {
  Require(!request.prompt.empty() && request.prompt.size() < static_cast<size_t>(Context().sequence_length),
          "the prompt leaves room for an answer");
  for (const Token token : request.prompt) Require(Context().tokenizer.Contains(token), "the prompt has known tokens");
  Pos end = 0;
  for (const MediaSpan& span : request.media) {
    Require(span.begin >= end && span.rows->count() > 0, "pictures stand one after the other");
    end = span.end();
  }
  Require(end <= static_cast<Pos>(request.prompt.size()), "pictures lie within the prompt");
  for (const auto& [token, bias] : request.sampling.logit_bias) {
    Require(Context().tokenizer.Contains(token) && !std::isnan(bias), "biases are numbers for known tokens");
  }
  for (const std::string& stop : request.stop) Require(!stop.empty(), "stop strings are not empty");
  Require(request.max_tokens >= -1, "max_tokens is a count or unlimited");
  Require(request.slot >= -1 && request.slot < Context().n_slots, "the slot exists");
  Require(request.sampling.temperature >= 0 && request.sampling.top_k >= 0, "sampling options are in range");
}

Chunk MakeChunk(std::string_view text) {
  Chunk chunk;
  chunk.text = text;
  for (const char byte : text) {
    GeneratedToken token;
    token.token = static_cast<unsigned char>(byte);
    token.piece = std::string(1, byte);
    token.logprob = -0.5f;
    token.top = {{token.token, -0.5f}, {FakeTokenizer::kEos, -INFINITY}};
    chunk.tokens.push_back(std::move(token));
  }
  chunk.timings = {.prompt_tokens = 1, .generated_tokens = static_cast<int>(text.size()), .prompt_ms = 1};
  return chunk;
}

// Both chunks end on whole characters, as the scheduler's do.
void Answer(ParsedRequest& request, std::string_view bytes) {
  const std::string text = ReplaceInvalidUtf8(bytes);
  size_t middle = text.size() / 2;
  middle -= IncompleteUtf8Tail(std::string_view(text).substr(0, middle));
  Chunk first = MakeChunk(std::string_view(text).substr(0, middle));
  Chunk last = MakeChunk(std::string_view(text).substr(middle));
  last.completion = Completion{.reason = text.size() % 2 == 0 ? FinishReason::kEndOfText : FinishReason::kLength,
                               .stop_string = "",
                               .error = {},
                               .timings = last.timings,
                               .seed = 1,
                               .slot = 0};
  first.progress = {{2, 0, 0, 0}, {2, 0, 2, 1}};
  std::string events;
  for (size_t choice = request.more.size() + 1; choice-- > 0;) {
    first.choice = last.choice = static_cast<int>(choice);
    events += request.writer->Append(first) + request.writer->Append(last);
  }
  Require(IsValidUtf8(events), "events are valid UTF-8");
  Require(events.empty() || events.ends_with("\n\n"), "events are complete");
  if (!request.stream) Require(IsValidUtf8(DumpJson(request.writer->Whole())), "the answer is valid UTF-8");
  Require(IsValidUtf8(request.writer->ErrorEvent(Internal("lost"))), "the error event is valid UTF-8");
}

void Run(size_t choice, std::string_view body, std::string_view answer) {
  const Result<Json> parsed = ParseJson(body);
  if (!parsed.ok()) return CheckRefusal(parsed.status());
  const auto [parse, answer_json] = kEndpoints[choice % std::size(kEndpoints)];
  if (answer_json != nullptr) {
    const Result<Json> result = answer_json(*parsed, Context());
    if (!result.ok()) return CheckRefusal(result.status());
    return Require(IsValidUtf8(DumpJson(*result)), "the answer is valid UTF-8");
  }
  Result<ParsedRequest> request = parse(*parsed, "owner", Context());
  if (!request.ok()) return CheckRefusal(request.status());
  Require(request->generation.owner == "owner", "the request is its owner's");
  CheckRequest(request->generation);
  for (const GenerationRequest& other : request->more) {
    Require(other.owner == "owner", "all choices are the owner's");
    CheckRequest(other);
  }
  Answer(*request, answer);
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = std::min(rest.find('\0'), rest.size());
  outrider::Run(static_cast<uint8_t>(data[0] - '1'), rest.substr(0, end), rest.substr(std::min(end + 1, rest.size())));
  return 0;
}
