#include "http/generation_answer.h"

#include <chrono>
#include <utility>

#include "base/json.h"

namespace outrider {
namespace {

// How often a thread that waits for the model looks whether its client is still there.
constexpr std::chrono::milliseconds kDisconnectCheck{20};

void SetStream(std::shared_ptr<AnsweredGeneration> answer, Chunk first, httplib::Response& response) {
  struct State {
    std::shared_ptr<AnsweredGeneration> answer;
    std::optional<Chunk> first;
  };
  auto state = std::make_shared<State>(State{std::move(answer), std::move(first)});
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");  // proxies must pass tokens on as they come
  response.set_chunked_content_provider("text/event-stream", [state](size_t, httplib::DataSink& sink) {
    auto chunk = state->first ? std::exchange(state->first, std::nullopt) : state->answer->Next(sink.is_writable);
    if (!chunk) return false;
    const bool failed = chunk->completion && !chunk->completion->error.ok();
    ResponseWriter& writer = state->answer->writer();
    const std::string events = failed ? writer.ErrorEvent(chunk->completion->error) : writer.Append(*chunk);
    if (!events.empty() && !sink.write(events.data(), events.size())) return false;
    if (chunk->completion) sink.done();
    return true;
  });
}

}  // namespace

AnsweredGeneration::AnsweredGeneration(std::shared_ptr<Generation> generation, std::unique_ptr<ResponseWriter> writer,
                                       std::shared_ptr<KeyLimiter::Lease> lease, std::shared_ptr<void> holds)
    : holds_(std::move(holds)),
      generation_(std::move(generation)),
      writer_(std::move(writer)),
      lease_(std::move(lease)) {
  lease_->ChargeTokens(static_cast<int>(generation_->request().prompt.size()));
}

AnsweredGeneration::~AnsweredGeneration() {
  generation_->Cancel();
}

std::optional<Chunk> AnsweredGeneration::Next(const std::function<bool()>& client_is_there) {
  while (client_is_there()) {
    auto chunk = generation_->Wait(kDisconnectCheck);
    if (!chunk) continue;
    const int made = chunk->completion ? chunk->completion->timings.generated_tokens : chunk->timings.generated_tokens;
    if (made > charged_tokens_) lease_->ChargeTokens(made - charged_tokens_);
    charged_tokens_ = std::max(made, charged_tokens_);
    return chunk;
  }
  generation_->Cancel();
  return std::nullopt;
}

void AnswerWith(std::shared_ptr<AnsweredGeneration> answer, bool stream, const httplib::Request& request,
                httplib::Response& response, const std::function<void(const Status&)>& send_error) {
  const auto client_is_there = [&request] { return !request.is_connection_closed(); };
  auto chunk = answer->Next(client_is_there);
  if (!chunk) return;
  // A failure before the first byte is an HTTP error, also if a stream was asked for.
  if (chunk->completion && !chunk->completion->error.ok()) return send_error(chunk->completion->error);
  if (stream) return SetStream(std::move(answer), std::move(*chunk), response);

  answer->writer().Append(*chunk);
  while (!chunk->completion) {
    chunk = answer->Next(client_is_there);
    if (!chunk) return;
    answer->writer().Append(*chunk);
  }
  if (!chunk->completion->error.ok()) return send_error(chunk->completion->error);
  response.status = 200;
  response.set_content(DumpJson(answer->writer().Whole()) + "\n", "application/json");
}

}  // namespace outrider
