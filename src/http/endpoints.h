// Endpoints: what endpoints that read JSON have in common. There are three kinds, and a handler for each of them: JSON
// to JSON, generating, and embedding. The body is read in the preparation lane. Requests that compute with the model
// are admitted first: as many as the server takes (HttpOptions::max_generations), and as many as their key may have.
//
// The handlers may be called from any thread, and must not outlive this object.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "api/embeddings.h"
#include "api/protocol.h"
#include "http/generation_answer.h"
#include "http/guarded_server.h"
#include "http/key_limits.h"
#include "http/preparation_lane.h"
#include "http/server.h"

namespace outrider {

class Endpoints {
 public:
  // All arguments must outlive this object.
  Endpoints(const HttpOptions& options, const Services& services, KeyLimiter& key_limiter, PreparationLane& lane)
      : options_(options), services_(services), key_limiter_(key_limiter), lane_(lane) {}
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;

  GuardedServer::Handler FromJson(std::function<Result<Json>(const Json&)> answer);
  GuardedServer::Handler Generating(ParseRequest parse);
  GuardedServer::Handler Embedding(ParseEmbeddingRequest parse);

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;

  // A request that computes with the model, while it does.
  struct Admission {
    std::shared_ptr<void> counted;  // among computing_
    std::shared_ptr<KeyLimiter::Lease> lease;
  };

  void Prepare(const Request& request, Response& response, const std::function<void()>& job);
  Result<Json> ParseBody(const Request& request) const;
  std::optional<Admission> Admit(const Request& request, Response& response);
  Result<ParsedRequest> Parse(const Request& request, ParseRequest parse) const;
  Status ComputePictures(const Request& request, ParsedRequest& parsed) const;
  Result<AcceptedRequest> Submit(const Request& request, ParsedRequest parsed,
                                 std::shared_ptr<KeyLimiter::Lease> lease);
  void Refuse(const Request& request, Response& response, const Status& status) const;
  Status SubmitChoice(GenerationRequest request, std::shared_ptr<KeyLimiter::Lease> lease,
                      std::vector<RunningChoice>* choices);
  Result<EmbeddingRequest> ReadEmbeddings(const Request& request, ParseEmbeddingRequest parse) const;
  int RetryAfter() const;

  const HttpOptions& options_;
  const Services& services_;
  KeyLimiter& key_limiter_;
  PreparationLane& lane_;
  std::atomic<int> computing_ = 0;  // requests that generate or embed, or wait for it
};

}  // namespace outrider
