#include "http/generation_answer.h"

#include <algorithm>
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
    if (failed || state->answer->finished()) sink.done();
    return true;
  });
}

}  // namespace

AnsweredGeneration::AnsweredGeneration(std::vector<RunningChoice> choices, std::unique_ptr<ResponseWriter> writer,
                                       std::shared_ptr<void> holds)
    : holds_(std::move(holds)), choices_(std::move(choices)), open_(choices_.size()), writer_(std::move(writer)) {
  for (const RunningChoice& choice : choices_) {
    choice.lease->ChargeTokens(static_cast<int>(choice.generation->request().prompt.size()));
  }
}

AnsweredGeneration::~AnsweredGeneration() {
  for (const RunningChoice& choice : choices_) choice.generation->Cancel();
}

// A chunk of the first choice that has one, looking from the one after the last: so no choice starves another. Those
// that run deliver at the end of the same steps, so waiting for the last one that spoke is waiting for all of them.
std::optional<Chunk> AnsweredGeneration::WaitForAny() {
  const size_t count = choices_.size();
  const size_t rounds = count == 1 ? 1 : count + 1;
  for (size_t i = 1; i <= rounds; ++i) {
    const size_t at = (last_ + std::min(i, count)) % count;
    RunningChoice& choice = choices_[at];
    if (choice.finished) continue;
    auto chunk = choice.generation->Wait(i == rounds ? kDisconnectCheck : std::chrono::milliseconds::zero());
    if (!chunk) continue;
    last_ = at;
    chunk->choice = static_cast<int>(at);
    return chunk;
  }
  return std::nullopt;
}

std::optional<Chunk> AnsweredGeneration::Next(const std::function<bool()>& client_is_there) {
  while (client_is_there()) {
    auto chunk = WaitForAny();
    if (!chunk) {
      // The last one that spoke may have finished, while another waits for a slot.
      while (choices_[last_].finished) last_ = (last_ + 1) % choices_.size();
      continue;
    }
    RunningChoice& choice = choices_[static_cast<size_t>(chunk->choice)];
    const int made = chunk->completion ? chunk->completion->timings.generated_tokens : chunk->timings.generated_tokens;
    if (made > choice.charged_tokens) choice.lease->ChargeTokens(made - choice.charged_tokens);
    choice.charged_tokens = std::max(made, choice.charged_tokens);
    if (chunk->completion) {
      choice.finished = true;
      --open_;
    }
    return chunk;
  }
  for (const RunningChoice& choice : choices_) choice.generation->Cancel();
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
  while (!answer->finished()) {
    chunk = answer->Next(client_is_there);
    if (!chunk) return;
    if (chunk->completion && !chunk->completion->error.ok()) return send_error(chunk->completion->error);
    answer->writer().Append(*chunk);
  }
  response.status = 200;
  response.set_content(DumpJson(answer->writer().Whole()) + "\n", "application/json");
}

}  // namespace outrider
