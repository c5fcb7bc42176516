#include "http/endpoints.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/answer_limit.h"
#include "api/fields.h"
#include "base/discard_json.h"
#include "http/entry.h"
#include "http/json_answer.h"

namespace outrider {
namespace {

// How large a request is to the preparation lane. DRY's sequence breakers are looked for in the whole vocabulary, which
// takes milliseconds for each.
size_t WeightOf(const httplib::Request& request) {
  const bool expensive = request.body.find("dry_sequence_breakers") != request.body.npos;
  return request.body.size() + (expensive ? PreparationLane::kSmallBytes : 0);
}

bool HasPictures(const ParsedRequest& parsed) {
  return !parsed.generation.media.empty() ||
         std::any_of(parsed.more.begin(), parsed.more.end(), [](const auto& other) { return !other.media.empty(); });
}

}  // namespace

// Runs what may take long for a large request. Nothing is computed for a client that is gone.
void Endpoints::Prepare(const Request& request, Response& response, const std::function<void()>& job) {
  const Status status = lane_.Run(
      WeightOf(request), [&] { return !request.is_connection_closed(); }, job);
  if (!status.ok()) SendLimit(request, response, RetryAfter(), status);
}

Result<Json> Endpoints::ParseBody(const Request& request) const {
  return ParseJson(request.body, options_.json, [&] { return !request.is_connection_closed(); });
}

GuardedServer::Handler Endpoints::FromJson(std::function<Result<Json>(const Json&)> answer) {
  return [this, answer = std::move(answer)](const Request& request, Response& response) {
    Prepare(request, response, [&] {
      auto body = ParseBody(request);
      const DiscardedJson discarded(&body);
      auto result = body.ok() ? answer(*body) : Result<Json>(body.status());
      const DiscardedJson discarded_too(&result);
      SendResult(request, response, result);
    });
  };
}

// Nothing if the request has been refused.
std::optional<Endpoints::Admission> Endpoints::Admit(const Request& request, Response& response) {
  Admission admission{std::shared_ptr<void>(nullptr, [this](void*) { --computing_; }), nullptr};
  if (++computing_ > options_.max_generations) {
    SendLimit(request, response, RetryAfter(),
              {StatusCode::kResourceExhausted, "too many requests are running or waiting (limit: --queue)"});
    return std::nullopt;
  }
  if (request.is_connection_closed()) return std::nullopt;  // nothing is computed for a client that is gone
  if (const auto hit = key_limiter_.Begin(KeyOf(options_.api_keys, request), &admission.lease)) {
    SendLimit(request, response, hit->retry_after_seconds, hit->status);
    return std::nullopt;
  }
  return admission;
}

Result<ParsedRequest> Endpoints::Parse(const Request& request, ParseRequest parse) const {
  auto body = ParseBody(request);
  const DiscardedJson discarded(&body);
  if (!body.ok()) return body.status();
  auto parsed = parse(*body, OwnerOf(options_.api_keys, request), services_.api);
  if (!parsed.ok()) return parsed.status();
  if (Status status = LimitWholeAnswer(services_.api, &*parsed); !status.ok()) return status;
  return parsed;
}

// Takes seconds, one picture after the other, until the client goes away, the request's time is up, or the server ends.
Status Endpoints::ComputePictures(const Request& request, ParsedRequest& parsed) const {
  if (Status status = HoldPictures(services_.api, &parsed); !status.ok()) return status;
  const TimePoint deadline = Later(Clock::Real().Now(), options_.max_unqueued_time);
  const auto wanted = [&] {
    return !request.is_connection_closed() && Clock::Real().Now() < deadline && !services_.scheduler.draining();
  };
  Status status = ComputeMedia(parsed.generation.media, wanted);
  for (const GenerationRequest& other : parsed.more) {
    if (status.ok()) status = ComputeMedia(other.media, wanted);
  }
  return status;
}

Result<AcceptedRequest> Endpoints::Submit(const Request& request, ParsedRequest parsed,
                                          std::shared_ptr<KeyLimiter::Lease> lease) {
  AcceptedRequest accepted{{}, std::move(parsed.writer), parsed.stream};
  Status status = SubmitChoice(std::move(parsed.generation), std::move(lease), &accepted.choices);
  for (GenerationRequest& other : parsed.more) {
    if (!status.ok()) break;
    std::shared_ptr<KeyLimiter::Lease> another;
    const auto hit = key_limiter_.Begin(KeyOf(options_.api_keys, request), &another);
    status = hit ? hit->status : SubmitChoice(std::move(other), std::move(another), &accepted.choices);
  }
  if (status.ok()) return accepted;
  for (const RunningChoice& choice : accepted.choices) choice.generation->Cancel();
  return status;
}

Status Endpoints::SubmitChoice(GenerationRequest request, std::shared_ptr<KeyLimiter::Lease> lease,
                               std::vector<RunningChoice>* choices) {
  auto generation = services_.scheduler.Submit(std::move(request));
  if (!generation.ok()) return generation.status();
  choices->push_back({std::move(*generation), std::move(lease)});
  return {};
}

void Endpoints::Refuse(const Request& request, Response& response, const Status& status) const {
  if (status.code() == StatusCode::kResourceExhausted) {
    SendLimit(request, response, RetryAfter(), status);
  } else {
    SendError(request, response, status);
  }
}

// Pictures are computed between two turns in the preparation lane, because they take seconds.
GuardedServer::Handler Endpoints::Generating(ParseRequest parse) {
  return [this, parse](const Request& request, Response& response) {
    auto admission = Admit(request, response);
    if (!admission) return;
    std::optional<ParsedRequest> parsed;
    std::optional<AcceptedRequest> accepted;
    const auto submit = [&] {
      auto submitted = Submit(request, std::move(*parsed), std::move(admission->lease));
      if (!submitted.ok()) return Refuse(request, response, submitted.status());
      accepted = std::move(*submitted);
    };
    bool pictures = false;
    Prepare(request, response, [&] {
      auto read = Parse(request, parse);
      if (!read.ok()) return Refuse(request, response, read.status());
      parsed = std::move(*read);
      pictures = HasPictures(*parsed);
      if (!pictures) submit();
    });
    if (pictures) {
      const Status status = ComputePictures(request, *parsed);
      if (!status.ok()) {
        admission->lease->ChargeTokens(static_cast<int>(parsed->generation.prompt.size()));
        return Refuse(request, response, status);
      }
      Prepare(request, response, submit);
    }
    if (!accepted) return;
    AnswerWith(std::make_shared<AnsweredGeneration>(std::move(accepted->choices), std::move(accepted->writer),
                                                    std::move(admission->counted)),
               accepted->stream, request, response, [&](const Status& error) { SendError(request, response, error); });
  };
}

Result<EmbeddingRequest> Endpoints::ReadEmbeddings(const Request& request, ParseEmbeddingRequest parse) const {
  auto body = ParseBody(request);
  const DiscardedJson discarded(&body);
  if (!body.ok()) return body.status();
  return parse(*body, services_.api, *services_.embedder);
}

// Embeddings are admitted as generations are, and end like them: when the client goes away or their time is up.
GuardedServer::Handler Endpoints::Embedding(ParseEmbeddingRequest parse) {
  return [this, parse](const Request& request, Response& response) {
    if (services_.embedder == nullptr) {
      return SendError(request, response,
                       Unsupported("start the server with --embeddings to get embeddings, or with --reranking and a "
                                   "model that ranks documents to rank them"));
    }
    const auto admission = Admit(request, response);
    if (!admission) return;
    const TimePoint deadline = Later(Clock::Real().Now(), options_.max_unqueued_time);
    const auto before_each = [&](size_t tokens) -> Status {
      if (request.is_connection_closed()) return Unavailable("the client went away");
      if (Clock::Real().Now() >= deadline) return Unavailable("the request's time ran out");
      admission->lease->ChargeTokens(static_cast<int>(tokens));
      return {};
    };
    std::optional<EmbeddingRequest> inputs;
    Prepare(request, response, [&] {
      auto read = ReadEmbeddings(request, parse);
      read.ok() ? void(inputs = std::move(*read)) : SendError(request, response, read.status());
    });
    if (!inputs) return;
    SendResult(request, response, AnswerEmbeddings(*inputs, *services_.embedder, before_each));
  };
}

int Endpoints::RetryAfter() const {
  const SchedulerStats stats = services_.scheduler.Stats();
  uint64_t finished = 0;
  for (uint64_t n : stats.finished) finished += n;
  const double mean_seconds =
      finished > 0 ? (stats.prompt_seconds + stats.generate_seconds) / static_cast<double>(finished) : 1;
  return std::clamp(static_cast<int>(std::ceil(mean_seconds)), 1, 60);
}

}  // namespace outrider
